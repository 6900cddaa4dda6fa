/// The versions read here (RFC 9112 2.3). libcurl delivers HTTP/2 heads in HTTP/1.1's form, so they count as 1.1.
public enum HTTPVersion: Sendable, Equatable {
    case http10
    case http11
}
