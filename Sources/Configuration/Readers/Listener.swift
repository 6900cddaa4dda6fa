/// An address to bind, with its position in the file.
struct Listener {
    enum Kind {
        /// A listener for programs, whose requests may get tokens.
        case programs
        /// The admin port. It gives out no access tokens, and may require `admin.token`.
        case administration(hasToken: Bool)
    }

    var address: ListenAddress
    var position: Position
    /// Beginning of messages, such as `proxy.listen: `.
    var name: String
    var tls: ListenerTLS?
    var kind = Kind.programs

    static let defaults = ProxySettings().listen.map {
        Listener(address: $0, position: .whole, name: "proxy.listen: ")
    }

    var isLoopback: Bool {
        switch address {
        case .tcp(let host, _): Grammar.isLoopback(host)
        case .unix: true
        }
    }

    /// Whether the listeners conflict: only one can be bound, or the kernel would spread connections over both.
    func collides(with other: Listener) -> Bool {
        switch (address, other.address) {
        case (.unix(let path, _), .unix(let otherPath, _)): path == otherPath
        case (.tcp(let host, let port), .tcp(let otherHost, let otherPort)):
            port == otherPort && port != 0
                && (Self.folded(host) == Self.folded(otherHost)
                    || (Grammar.isUnspecified(host) || Grammar.isUnspecified(otherHost))
                        && host.contains(":") == otherHost.contains(":"))
        default: false
        }
    }

    /// Whether a connection to this host and port would reach this listener.
    func answers(host: String, port: UInt16) -> Bool {
        guard case .tcp(let own, let ownPort) = address, port == ownPort, port != 0 else { return false }
        if Self.folded(own) == Self.folded(host) { return true }
        let local = Grammar.isLoopback(host) || Grammar.isUnspecified(host)
        return local && (Grammar.isUnspecified(own) || host == "localhost" && Grammar.isLoopback(own))
    }

    private static func folded(_ host: String) -> String { host == "localhost" ? "127.0.0.1" : host }
}
