public import Reactor

/// Opens plain TCP connections by libcurl (CURLOPT_CONNECT_ONLY(3)), with its race between address families and with
/// the address policy. libcurl no longer knows the resulting socket. Loop's thread only.
public final class Dialer {
    private let pool: CarrierPool
    private let loop: EventLoop

    public init(options: PoolOptions, loop: EventLoop) {
        self.loop = loop
        pool = CarrierPool(options: options, loop: loop)
    }

    /// Connects within `connectTimeout` of the options. At most `maxConnections` attempts run at once.
    /// - Parameters:
    ///   - host: canonical, IPv6 in brackets.
    ///   - done: called once, never from within this call, unless the attempt is cancelled.
    public func dial(
        host: String, port: UInt16, done: @escaping (Result<StreamSocket, TransportError>) -> Void
    ) throws(TransportError) -> DialAttempt {
        let attempt = DialAttempt(loop, done)
        let origin = Origin(scheme: .http, host: host, port: port)
        _ = try pool.connect(to: origin, for: attempt, attempt.request, use: .socket)
        return attempt
    }
}

/// A connection being made. Only `cancel` ends it.
public final class DialAttempt: CarrierOwner {
    let request = CarrierRequest()
    private let loop: EventLoop
    private var done: ((Result<StreamSocket, TransportError>) -> Void)?

    init(_ loop: EventLoop, _ done: @escaping (Result<StreamSocket, TransportError>) -> Void) {
        self.loop = loop
        self.done = done
    }

    /// Ends it without a call of `done`.
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
