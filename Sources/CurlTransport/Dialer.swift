import Reactor

/// Opens plain TCP connections through libcurl (CURLOPT_CONNECT_ONLY(3)): its resolver off the loop, its race between
/// address families, and the address policy, judged on each resolved address when it is dialled. What comes out is a
/// socket that libcurl knows nothing of any more. Loop's thread only.
public final class Dialer {
    private let pool: ConnectionPool

    /// - Throws: `TransportError` when libcurl lacks memory.
    public init(options: PoolOptions, loop: EventLoop) throws(TransportError) {
        var options = options
        options.endsConnected = true
        pool = try ConnectionPool(options: options, loop: loop)
    }

    /// Connects within the options' `connectTimeout`. At most `maxConnections` attempts are made at once.
    ///
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

/// A connection that is being made. Dropping it does not end it: `cancel` does.
public final class DialAttempt: TransferDelegate {
    private var transfer: Transfer?
    private var done: ((Result<StreamSocket, TransportError>) -> Void)?

    init(_ transfer: Transfer, _ done: @escaping (Result<StreamSocket, TransportError>) -> Void) {
        self.transfer = transfer
        self.done = done
    }

    /// Ends it; `done` is not called any more.
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
