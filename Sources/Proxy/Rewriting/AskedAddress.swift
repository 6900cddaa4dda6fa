import HTTPMessage

/// The address that a program used, in which answers must be written.
struct AskedAddress {
    let scheme: Scheme
    /// `nil`: the program named none, as HTTP/1.0 may at a base URL.
    let authority: Authority?
    /// The request came to an upstream's own listener, or names it.
    let isBaseURL: Bool
}
