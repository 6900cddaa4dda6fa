/// The versions whose messages are read here (RFC 9112 2.3). HTTP/2 heads arrive from libcurl in HTTP/1.1's form and
/// count as 1.1.
public enum HTTPVersion: Sendable, Equatable {
    case http10
    case http11
}
