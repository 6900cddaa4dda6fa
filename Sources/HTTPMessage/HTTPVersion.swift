/// The versions served here (RFC 9112 2.3).
public enum HTTPVersion: Sendable, Equatable {
    case http10
    case http11
    /// The head came as HTTP/2's fields, and was read in HTTP/1.1's form.
    case http2
}

extension RequestHead {
    /// Notes that the complete head was written down from HTTP/2's fields.
    public mutating func noteHTTP2() { version = .http2 }
}
