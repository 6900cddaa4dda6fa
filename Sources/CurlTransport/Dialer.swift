import HTTPMessage
public import Reactor

/// Opens plain TCP connections to addresses that the policy allows. libcurl dials, and races the address families
/// (CURLOPT_CONNECT_ONLY(3)). The resulting socket is independent of libcurl. Loop's thread only.
public final class Dialer {
    private let pool: CarrierPool
    private let loop: EventLoop

    public init(options: PoolOptions, loop: EventLoop) {
        self.loop = loop
        pool = CarrierPool(options: options, loop: loop)
    }

    /// Connects within the options' `connectTimeout`. At most `maxConnections` attempts run concurrently.
    /// - Parameters:
    ///   - host: canonical host, IPv6 in brackets.
    ///   - done: called once after this call has returned, unless the attempt is cancelled.
    public func dial(
        host: String, port: UInt16, done: @escaping (Result<StreamSocket, TransportError>) -> Void
    ) throws(TransportError) -> DialAttempt {
        let attempt = DialAttempt(loop, done)
        let origin = Origin(scheme: .http, host: host, port: port)
        _ = try pool.connect(to: origin, for: attempt, attempt.request, use: .socket)
        return attempt
    }
}

/// An attempt to connect. It goes on until it succeeds, fails, or is cancelled.
public final class DialAttempt: CarrierOwner {
    let request = CarrierRequest()
    private let loop: EventLoop
    private var done: ((Result<StreamSocket, TransportError>) -> Void)?

    init(_ loop: EventLoop, _ done: @escaping (Result<StreamSocket, TransportError>) -> Void) {
        self.loop = loop
        self.done = done
    }

    /// Ends the attempt without a call of `done`.
    public func cancel() {
        done = nil
        request.cancel()
    }

    public func carrierArrived(_ carrier: Carrier) {
        finish(Result { () throws(TransportError) in try carrier.takeSocket(on: loop) })
    }

    public func carrierFailed(_ error: TransportError) { finish(.failure(error)) }

    public func carrierReady(_ carrier: Carrier) {}

    private func finish(_ result: Result<StreamSocket, TransportError>) {
        let done = done
        self.done = nil
        done?(result)
    }
}
