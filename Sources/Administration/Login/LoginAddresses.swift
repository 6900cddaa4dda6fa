import Heimdallr
import Synchronization

/// URLs for signing in. They are valid after `setPort`. Any thread.
final class LoginAddresses: Sendable {
    /// `http://127.0.0.1:8081`, for a browser on this machine.
    private let base = Mutex("")
    private let origins: OriginPolicy
    /// Configured address of the listener.
    private let host: String

    init(host: String, origins: OriginPolicy) {
        self.host = host
        self.origins = origins
    }

    /// - Parameter port: actual port of the listener.
    func setPort(_ port: Int) { base.withLock { $0 = Self.base(host: host, port: "\(port)") } }

    static func base(host: String, port: String) -> String {
        // Clients can't connect to a wildcard address.
        let reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host
        return "http://" + (reachable.contains(":") ? "[\(reachable)]" : reachable) + ":\(port)"
    }

    func redirectURI(of client: AdministrationSources.Client) -> String {
        client.redirectURI ?? base.withLock { $0 } + "/callback"
    }

    /// Returns the URL of the page that signs the client in. If the redirect URI leads to this listener, the URL has
    /// the same origin, so that the browser sends the page's cookies after the redirect.
    func loginURL(of client: AdministrationSources.Client) -> String {
        let origin = ownOrigin(of: redirectURI(of: client)).map { $0.scheme + "://" + $0.authority }
        return (origin ?? base.withLock { $0 }) + "/login/" + client.heimdallr.name
    }

    /// Splits a redirect URI that leads to this listener; returns `nil` for private schemes and foreign hosts.
    func ownOrigin(of redirectURI: String) -> (scheme: String, authority: String, path: String)? {
        guard let mark = redirectURI.firstRange(of: "://") else { return nil }
        let scheme = redirectURI[..<mark.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        let rest = redirectURI[mark.upperBound...].prefix { $0 != "?" && $0 != "#" }
        let authority = rest.prefix { $0 != "/" }
        guard !authority.contains("@"), origins.answers(to: String(authority), listener: host) else { return nil }
        let path = rest.dropFirst(authority.count)
        return (scheme, authority.lowercased(), path.isEmpty ? "/" : String(path))
    }

    /// Whether a Host field and an authority name the same host and port.
    static func isSame(_ host: String, _ authority: String, scheme: String) -> Bool {
        let standard = scheme == "https" ? ":443" : ":80"
        func plain(_ text: String) -> Substring {
            let text = text.lowercased()
            return text.hasSuffix(standard) ? text.dropLast(standard.count) : text[...]
        }
        return plain(host) == plain(authority)
    }
}
