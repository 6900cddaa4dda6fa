/// Version of a message (RFC 9112, section 2.3). Answers over HTTP/2 are converted to HTTP/1.1 and count as 1.1.
public enum HTTPVersion: Sendable, Equatable {
    case http10
    case http11
    /// A request over HTTP/2, whose head was converted to HTTP/1.1.
    case http2

    /// For the access log and Via (RFC 9110, section 7.6.3).
    public var number: String {
        switch self {
        case .http10: "1.0"
        case .http11: "1.1"
        case .http2: "2"
        }
    }
}
