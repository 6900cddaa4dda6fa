import Reactor

/// Opens plain TCP connections by libcurl (CURLOPT_CONNECT_ONLY(3)), with its race between address families and with
/// the address policy. libcurl no longer knows the resulting socket. Loop's thread only.
public final class Dialer {
    private let pool: ConnectionPool

    /// - Throws: `TransportError` when libcurl lacks memory.
    public init(options: PoolOptions, loop: EventLoop) throws(TransportError) {
        var options = options
        options.endsConnected = true
        pool = try ConnectionPool(options: options, loop: loop)
    }

    /// Connects within `connectTimeout` of the options. At most `maxConnections` attempts run at once.
    /// - Parameters:
    ///   - host: canonical, IPv6 in brackets.
    ///   - done: called once, perhaps before this returns, unless the attempt is cancelled.
    public func dial(
        host: String, port: UInt16, done: @escaping (Result<StreamSocket, TransportError>) -> Void
    ) throws(TransportError) -> DialAttempt {
        let transfer = try pool.acquire()
        do throws(TransportError) {
            try transfer.prepare(
                origin: Origin(scheme: .http, host: host, port: port), method: Self.method.span,
                target: Self.target.span, isHead: false, upload: .noBody)
            let attempt = DialAttempt(transfer, done)
            try transfer.start(delegate: attempt)
            return attempt
        } catch {
            transfer.cancel()
            throw error
        }
    }

    // Never sent.
    private static let method = Array("GET".utf8)
    private static let target = Array("/".utf8)
}

/// A connection being made. Only `cancel` ends it.
public final class DialAttempt: TransferDelegate {
    private var transfer: Transfer?
    private var done: ((Result<StreamSocket, TransportError>) -> Void)?

    init(_ transfer: Transfer, _ done: @escaping (Result<StreamSocket, TransportError>) -> Void) {
        self.transfer = transfer
        self.done = done
    }

    /// Ends it without a call of `done`.
    public func cancel() {
        done = nil
        transfer?.cancel()
        transfer = nil
    }

    public func transfer(_ transfer: Transfer, headerLine: Span<UInt8>) -> Bool { false }
    public func transfer(_ transfer: Transfer, body: Span<UInt8>) -> BodyStep { .abort }
    public func transfer(_ transfer: Transfer, upload: inout MutableSpan<UInt8>) -> UploadStep { .abort }

    public func transferEnded(_ transfer: Transfer, error: TransportError?) {
        self.transfer = nil
        let done = done
        self.done = nil
        guard error == nil, let connection = transfer.connection else {
            done?(.failure(error ?? TransportError(.internal, message: "no descriptor for the connection")))
            return
        }
        transfer.connection = nil
        done?(.success(connection))
    }
}
