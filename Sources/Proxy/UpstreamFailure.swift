public import CurlTransport

/// An exchange with an upstream that failed, as a log tells it. No secret is in it but what the upstream itself may have
/// written into `error`.
public struct UpstreamFailure: Sendable {
    public var upstream = ""
    /// Whose token went along.
    public var client: String?
    /// Where it went, without its query; a tunnel's `HOST:PORT`. Printable ASCII.
    public var url: [UInt8] = []
    /// By what name the request is found in the access log.
    public var requestID: [UInt8] = []
    public var error: TransportError
    /// What went wrong, and what to do about it: fixed sentences.
    public var reason: String
    public var advice: String

    init(error: TransportError, reason: String, advice: String) {
        self.error = error
        self.reason = reason
        self.advice = advice
    }
}
