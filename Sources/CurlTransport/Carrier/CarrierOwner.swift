/// An owner of pooled connections. Within each call, it may close, release and request connections. Loop's thread only.
public protocol CarrierOwner: AnyObject {
    /// The requested connection is available: a new connection, or a reused one.
    func carrierArrived(_ carrier: Carrier)
    func carrierFailed(_ error: TransportError)
    /// Reading or writing may work again. The results of `receive` and `send` show the end of the connection.
    func carrierReady(_ carrier: Carrier)
    /// The pool needs an idle connection (`Carrier.rest`). The owner has to close it now.
    func carrierIsNeeded(_ carrier: Carrier)
    /// The peer of a reused connection has acknowledged nothing since the connection's idle time: perhaps nobody knows the
    /// connection any more.
    func carrierIsSilent(_ carrier: Carrier)
    /// Whether a client still waits for the answer. The pool's queue serves such owners first.
    var isWanted: Bool { get }
}

extension CarrierOwner {
    public var isWanted: Bool { true }

    public func carrierIsNeeded(_ carrier: Carrier) { carrier.close() }

    public func carrierIsSilent(_ carrier: Carrier) {}
}

public enum CarrierSent: Sendable, Equatable {
    /// Number of bytes sent, never zero.
    case bytes(Int)
    /// No room now. After `carrierReady`, the owner may try again. Over TLS, the next call must begin with the same
    /// bytes, because some are already encrypted.
    case wouldBlock
    case failed(TransportError)
}

public enum CarrierReceived: Sendable, Equatable {
    case bytes(Int)
    /// No bytes now. After `carrierReady`, the owner may try again.
    case wouldBlock
    /// The peer ended its side. A clean end is FIN without TLS, or close_notify over TLS. Only a clean end completes a
    /// body that ends with its connection (RFC 9112, section 9.8).
    case end(isClean: Bool)
    case failed(TransportError)
}
