/// A user of `CarrierPool`'s connections. Loop's thread only. Within each call it may close, release and request connections.
public protocol CarrierOwner: AnyObject {
    /// The connection asked for: a fresh one, or one that was given back.
    func carrierArrived(_ carrier: Carrier)
    func carrierFailed(_ error: TransportError)
    /// Reading or writing may work again. The results of `receive` and `send` show the end of the connection.
    func carrierReady(_ carrier: Carrier)
    /// The pool needs the idle connection (`Carrier.rest`). The owner closes it now.
    func carrierIsNeeded(_ carrier: Carrier)
    /// Whether a client still waits for the answer. In the queue, such owners come before others.
    var isWanted: Bool { get }
}

extension CarrierOwner {
    public var isWanted: Bool { true }

    public func carrierIsNeeded(_ carrier: Carrier) { carrier.close() }
}

public enum CarrierSent: Sendable, Equatable {
    /// Number of bytes sent, never zero.
    case bytes(Int)
    /// No room now; `carrierReady` says when to try again. Over TLS the next call must begin with all of the same bytes:
    /// some are already encrypted.
    case wouldBlock
    case failed(TransportError)
}

public enum CarrierReceived: Sendable, Equatable {
    case bytes(Int)
    /// No bytes now; `carrierReady` says when to try again.
    case wouldBlock
    /// The peer ended its side. `isClean`: by the end of plain TCP, or by close_notify over TLS. A body that ends with its
    /// connection is whole only after a clean end (RFC 9112, section 9.8).
    case end(isClean: Bool)
    case failed(TransportError)
}
