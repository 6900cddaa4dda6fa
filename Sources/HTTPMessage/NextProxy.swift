/// The next proxy on the way to a peer.
public enum NextProxy: Sendable, Equatable {
    case none
    /// The process's variables `https_proxy`, `http_proxy` and `no_proxy`, as libcurl reads them (libcurl-env(3)).
    case environment
    case url(String)
}
