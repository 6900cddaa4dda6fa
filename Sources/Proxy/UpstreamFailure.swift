public import CurlTransport

/// A failed exchange with an upstream, for the log. Contains no secret, except what the upstream itself wrote into
/// `error`.
public struct UpstreamFailure: Sendable {
    public var upstream = ""
    /// Client of the token sent.
    public var client: String?
    /// URL without its query; `HOST:PORT` for a tunnel. Printable ASCII.
    public var url: [UInt8] = []
    /// Request ID in the access log.
    public var requestID: [UInt8] = []
    public var error: TransportError
    /// Error and remedy: fixed sentences.
    public var reason: String
    public var advice: String
}
