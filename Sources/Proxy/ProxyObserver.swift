import CurlTransport
import Reactor

/// Where the proxy says what happened. Called on the loops: must return at once.
public struct ProxyObserver: Sendable {
    /// `nil`: no access log.
    public var accessLog: (@Sendable (AccessRecord) -> Void)?
    /// An exchange with an upstream failed; the upstream's name first.
    public var transportFailed: @Sendable (String, TransportError) -> Void = { _, _ in }
    /// A connection could not be accepted, out of descriptors most likely.
    public var acceptFailed: @Sendable (SystemError) -> Void = { _ in }

    public init() {}
}
