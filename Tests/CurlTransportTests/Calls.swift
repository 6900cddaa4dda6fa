import CurlTransport
import Glibc
import HTTPMessage
import Reactor
import TestSupport

/// A client for small calls on its own event loop, which stops with the last reference to this object.
final class Calls: Sendable {
    struct Record: Sendable {
        var status = 0
        var fields: [String] = []
        var text = ""
        var error: TransportError?
    }

    let loop: EventLoop
    let client: BufferedClient

    init(_ change: (inout PoolOptions) -> Void = { _ in }) throws {
        var options = PoolOptions()
        change(&options)
        loop = try EventLoop.start(name: "calls")
        client = BufferedClient(options: options, loop: loop)
    }

    deinit { loop.stop() }

    /// Sends a request and waits for its end.
    func send(_ request: Request) async throws -> Record {
        do {
            let answer = try await client.send(request)
            return Record(
                status: answer.status, fields: answer.fields.map { "\($0.name): \($0.value)" },
                text: String(decoding: answer.body, as: UTF8.self))
        } catch {
            guard case .transport(let failure) = error else { throw error }
            return Record(error: failure)
        }
    }

    /// Whether the loop's thread sleeps while nothing happens: a loop that spins uses all of its time.
    func rests() async throws -> Bool {
        let before = try await loop.run { Self.threadTime() }
        // Time itself: a loop that spins uses all of it.
        try await Task.sleep(for: .milliseconds(200))
        return try await loop.run { Self.threadTime() } - before < .milliseconds(50)
    }

    /// CPU time of the calling thread so far (clock_gettime(2)).
    private static func threadTime() -> Duration {
        var time = timespec()
        _ = unsafe clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

typealias Request = BufferedClient.Request

extension BufferedClient.Request {
    init(_ origin: Origin, _ method: String = "GET", _ target: String = "/") {
        self.init(origin: origin)
        self.method = method
        self.target = target
    }

    init(_ origin: RecordingOrigin, _ method: String = "GET", _ target: String = "/") {
        self.init(.plain(origin.port), method, target)
    }
}

extension Origin {
    static func plain(_ port: UInt16, host: String = "127.0.0.1") -> Origin {
        Origin(scheme: .http, host: host, port: port)
    }

    static func secure(_ port: UInt16, host: String = "localhost", serverName: String? = nil) -> Origin {
        Origin(scheme: .https, host: host, port: port, serverName: serverName)
    }
}
