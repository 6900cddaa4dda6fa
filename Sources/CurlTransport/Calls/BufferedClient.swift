import CLibcurl
import HTTPMessage
import Reactor
import WireText

/// A client for asynchronous callers, which sends requests and returns whole answers. It is an actor on the event loop,
/// so libcurl is used only there.
public actor BufferedClient {
    public struct Request: Sendable {
        public var origin: Origin
        public var method = "GET"
        /// Path and query.
        public var target = "/"
        public var fields: [(name: String, value: String)] = []
        /// Fields with credentials, sent after the other fields.
        public var secretFields: [(name: String, value: any LentBytes)] = []
        public var body: (any LentBytes)?
        /// Time limit from the start to the last byte.
        public var timeout = Duration.seconds(10)
        public var maxBodyBytes = 1 << 20
        /// Whether to send `Accept-Encoding: identity`, and to decode an answer that is compressed nevertheless.
        public var decodesAnswer = false

        public init(origin: Origin) { self.origin = origin }
    }

    public struct Answer<Body: Sendable>: Sendable {
        public var status: Int
        public var fields: [(name: String, value: String)]
        public var body: Body
    }
    public typealias Response = Answer<[UInt8]>

    public enum Failure: Error, Sendable {
        case transport(TransportError)
        case timeout
        case bodyTooLarge
        /// The method, the target or a field is malformed.
        case invalidRequest
    }

    private nonisolated let loop: EventLoop
    private let options: PoolOptions
    /// Scope of the calls, made when a call begins. It goes when no call has come for a time.
    private var current: LoopBound<CurrentScope>?

    public nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    /// - Parameter options: at most `maxConnections` calls run at once. Further calls wait, within their time limit.
    public init(options: PoolOptions, loop: EventLoop) {
        self.options = options
        self.loop = loop
    }

    /// Makes a client on a new event loop, which runs until the process ends.
    public init(options: PoolOptions) throws(SystemError) {
        self.init(options: options, loop: try EventLoop.start(name: "curl"))
    }

    /// Sends one request and returns the answer. Does not follow redirects. Cancelling the task ends the exchange.
    public func send(_ request: Request) async throws(Failure) -> Response {
        try await send(request) { [UInt8](copying: $0) }
    }

    /// Does the same for an answer with secrets: only `keeping` sees the body and can copy parts of it.
    public func send<Body: Sendable>(
        _ request: Request, keeping: @escaping @Sendable (Span<UInt8>) -> Body
    ) async throws(Failure) -> Answer<Body> {
        guard request.isValid else { throw .invalidRequest }
        let call: LoopBound<BufferedCall>
        do throws(TransportError) {
            call = LoopBound(try BufferedCall(request, options, on: currentScope(), loop: loop), on: loop)
        } catch {
            throw .transport(error)
        }
        let outcome = await withTaskCancellationHandler {
            // This closure does not use the actor, so it is not isolated to the actor (SE-0420).
            await withCheckedContinuation { (continuation: CheckedContinuation<Result<Answer<Body>, Failure>, Never>) in
                loop.execute {
                    call.value.start { failure in
                        if let failure { return continuation.resume(returning: .failure(failure)) }
                        let call = call.value
                        let body = call.withBody { keeping($0) }
                        continuation.resume(
                            returning: .success(Answer(status: call.status, fields: call.fields, body: body)))
                    }
                }
            }
        } onCancel: {
            loop.execute { call.value.cancel() }
        }
        return try outcome.get()
    }

    private func currentScope() throws(TransportError) -> CurlScope {
        let current = current ?? LoopBound(CurrentScope(), on: loop)
        self.current = current
        return try current.value.scope(options) { () throws(TransportError) in
            try CurlEngines.of(loop).scopeOfCalls(options)
        }
    }
}

extension BufferedClient.Request {
    fileprivate var isValid: Bool {
        func isClean(_ text: String, _ least: UInt8) -> Bool {
            text.utf8.allSatisfy { ($0 >= least && $0 != 0x7f) || $0 == 9 }
        }
        return !method.isEmpty && method.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7f } && target.hasPrefix("/")
            && isClean(target, 0x21)
            && fields.allSatisfy { !$0.name.isEmpty && isClean($0.name, 0x21) && isClean($0.value, 0x20) }
            && secretFields.allSatisfy { field in
                !field.name.isEmpty && isClean(field.name, 0x21)
                    && field.value.withSpan { value in
                        value.indices.allSatisfy { (value[$0] >= 0x20 && value[$0] != 0x7f) || value[$0] == 9 }
                    }
            }
    }
}

extension Origin {
    /// Value of the Host field, without the scheme's default port (RFC 9110, section 4.2.3).
    public var authority: String { port == scheme.defaultPort ? host : "\(host):\(port)" }
}
