import HTTPMessage

/// The address that a program used: what it will understand in an answer.
struct AskedAddress {
    let scheme: Scheme
    /// `nil`: it named none, as HTTP/1.0 may at a base URL.
    let authority: Authority?
    /// It came to an upstream's own listener, or means it.
    let isBaseURL: Bool
}
