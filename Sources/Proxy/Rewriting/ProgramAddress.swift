import HTTPMessage

/// The address that the program used. Addresses in answers are rewritten to it.
struct ProgramAddress {
    let scheme: Scheme
    /// Authority of the request; `nil` if the program sent none, as HTTP/1.0 allows at a base URL.
    let authority: Authority?
    /// Whether the request came to an upstream's own listener, or came to the proxy and names such a listener.
    let isBaseURL: Bool
}
