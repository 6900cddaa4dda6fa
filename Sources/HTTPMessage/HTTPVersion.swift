/// The versions read here (RFC 9112 2.3). Heads of answers by HTTP/2 are read in HTTP/1.1's form and count as 1.1.
public enum HTTPVersion: Sendable, Equatable {
    case http10
    case http11
    /// The request's head was written down from fields of HTTP/2.
    case http2

    /// As in the access log, and in Via (RFC 9110, section 7.6.3).
    public var number: String {
        switch self {
        case .http10: "1.0"
        case .http11: "1.1"
        case .http2: "2"
        }
    }
}

extension RequestHead {
    /// Notes that the complete head was written down from fields of HTTP/2.
    public mutating func noteHTTP2() { version = .http2 }
}
