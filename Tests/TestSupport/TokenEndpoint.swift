import Foundation
import Synchronization

/// A token endpoint on loopback. It gives scripted answers, good or hostile, and records the requests.
///
///     let endpoint = try TokenEndpoint([.status(503), .token("T1")])
///     …
///     #expect(endpoint.requests.map { $0["grant_type"] } == ["client_credentials", "client_credentials"])
///
/// Each connection has a thread. The last answer of a script is repeated.
public final class TokenEndpoint: Sendable {
    /// `http://127.0.0.1:PORT/token`
    public var url: String { "\(origin.url)/token" }
    public var port: UInt16 { origin.port }

    private let origin: RecordingOrigin
    private let log = TokenEndpointLog()

    /// - Parameter answer: called for each request, on its connection's thread, with the request's number from 0.
    public init(answering answer: @escaping @Sendable (TokenEndpointRequest, Int) -> TokenEndpointAnswer) throws {
        origin = try RecordingOrigin { [log] exchange in
            let request = TokenEndpointRequest(try exchange.readBody(), at: .now)
            let number = log.begin(request)
            let answer = answer(request, number)
            guard case .whole = answer.manner else {
                defer { log.end() }
                return try answer.give(exchange)
            }
            if answer.delay > .zero { exchange.pause(answer.delay) }
            // Ends before the answer is sent, because the client may send its next request at once.
            log.end()
            try answer.delayed(.zero).give(exchange)
        }
    }

    public convenience init(_ script: [TokenEndpointAnswer]) throws {
        try self.init { _, number in
            script.isEmpty ? .status(404) : script[min(number, script.count - 1)]
        }
    }

    /// Requests in the order of their arrival.
    public var requests: [TokenEndpointRequest] { log.state.withLock { $0.requests } }
    /// Highest number of concurrent requests so far.
    public var mostAtOnce: Int { log.state.withLock { $0.mostAtOnce } }
    /// Violations of RFC 9112's strict grammar in all requests.
    public var problems: [String] { origin.problems }

    /// Waits until `count` requests have arrived.
    public func requests(_ count: Int, within limit: Duration = .seconds(20)) async throws -> [TokenEndpointRequest] {
        let log = log
        return try await eventually("\(count) token requests", within: limit) {
            let requests = log.state.withLock { $0.requests }
            return requests.count >= count ? requests : nil
        }
    }

    public func stop() { origin.stop() }
}

/// A token request as it arrived.
public struct TokenEndpointRequest: Sendable {
    public let method: String
    public let target: String
    public let fields: [Field]
    public let body: String
    /// The form's decoded parameters, in order.
    public let form: [(name: String, value: String)]
    public let at: ContinuousClock.Instant

    /// A form parameter; `nil` if absent, joined by a line end if repeated.
    public subscript(_ name: String) -> String? {
        let values = form.filter { $0.name == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: "\n")
    }

    public func field(_ name: String) -> String? { fields.value(name) }

    init(_ request: RecordedRequest, at: ContinuousClock.Instant) {
        method = request.method
        target = request.target
        fields = request.fields
        body = request.text
        self.at = at
        form = request.text.split(separator: "&").map { pair in
            let cut = pair.firstIndex(of: "=") ?? pair.endIndex
            return (Self.decode(pair[..<cut]), Self.decode(pair[cut...].dropFirst()))
        }
        Evidence.received(form: form)
    }

    private static func decode(_ text: Substring) -> String {
        let spaced = text.replacing("+", with: " ")
        return spaced.removingPercentEncoding ?? String(spaced)
    }
}

private final class TokenEndpointLog: Sendable {
    struct State {
        var requests: [TokenEndpointRequest] = []
        var running = 0
        var mostAtOnce = 0
    }

    let state = Mutex(State())

    func begin(_ request: TokenEndpointRequest) -> Int {
        state.withLock {
            $0.requests.append(request)
            $0.running += 1
            $0.mostAtOnce = max($0.mostAtOnce, $0.running)
            return $0.requests.count - 1
        }
    }

    func end() { state.withLock { $0.running -= 1 } }
}
