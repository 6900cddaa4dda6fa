import Heimdallr
import Synchronization

/// Where people sign in: known in full once the listener has its port. Any thread.
final class LoginAddresses: Sendable {
    /// `http://127.0.0.1:8081`, what a browser on this machine would ask.
    private let base = Mutex("")
    private let admission: Admission
    /// The listener's own address, as configured.
    private let host: String

    init(host: String, admission: Admission) {
        self.host = host
        self.admission = admission
    }

    /// - Parameter port: the one that the kernel gave.
    func setPort(_ port: Int) {
        base.withLock { $0 = Self.base(host: host, port: "\(port)") }
    }

    static func base(host: String, port: String) -> String {
        // To connect to every address is to connect to none.
        let reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host
        return "http://" + (reachable.contains(":") ? "[\(reachable)]" : reachable) + ":\(port)"
    }

    /// Where the server sends the browser when nobody has said otherwise.
    var defaultRedirectURI: String { base.withLock { $0 } + "/callback" }

    func redirectURI(of client: AdministrationSources.Client) -> String { client.redirectURI ?? defaultRedirectURI }

    /// Where a person signs the client in: at the origin that the server answers to, so that the browser's cookies are
    /// there when it comes back; at our own where that is none of ours.
    func loginURL(of client: AdministrationSources.Client) -> String {
        let origin = ownOrigin(of: redirectURI(of: client)).map { $0.scheme + "://" + $0.authority }
        return (origin ?? base.withLock { $0 }) + "/login/" + client.heimdallr.name
    }

    /// Scheme, authority and path of a redirect URI that leads back to this listener; `nil` for private schemes and for
    /// hosts that it does not answer to.
    func ownOrigin(of redirectURI: String) -> (scheme: String, authority: String, path: String)? {
        guard let mark = redirectURI.firstRange(of: "://") else { return nil }
        let scheme = redirectURI[..<mark.lowerBound].lowercased()
        guard scheme == "http" || scheme == "https" else { return nil }
        let rest = redirectURI[mark.upperBound...].prefix { $0 != "?" && $0 != "#" }
        let authority = rest.prefix { $0 != "/" }
        guard !authority.contains("@"), admission.answers(to: String(authority), listener: host) else { return nil }
        let path = rest.dropFirst(authority.count)
        return (scheme, authority.lowercased(), path.isEmpty ? "/" : String(path))
    }

    /// Whether both name the same host and port.
    static func isSame(_ host: String, _ authority: String, scheme: String) -> Bool {
        let standard = scheme == "https" ? ":443" : ":80"
        func plain(_ text: String) -> Substring {
            let text = text.lowercased()
            return text.hasSuffix(standard) ? text.dropLast(standard.count) : text[...]
        }
        return plain(host) == plain(authority)
    }
}
