import HTTPMessage
import HTTPServer
import Heimdallr
import Synchronization

/// URLs for signing in. They are valid after `setPort`. Any thread.
final class LoginAddresses: Sendable {
    /// `admin.url`, or `http://127.0.0.1:8081` for a browser on this machine.
    private let base = Mutex("")
    private let port = Atomic(0)
    private let origins: OriginPolicy
    /// Configured address of the listener.
    private let host: String

    init(host: String, origins: OriginPolicy) {
        self.host = host
        self.origins = origins
    }

    /// - Parameter port: actual port of the listener.
    func setPort(_ port: Int) {
        base.withLock { $0 = origins.front?.url ?? Self.base(host: host, port: "\(port)") }
        self.port.store(port, ordering: .relaxed)
    }

    static func base(host: String, port: String) -> String {
        // Clients can't connect to a wildcard address.
        let reachable = host == "0.0.0.0" ? "127.0.0.1" : host == "::" ? "::1" : host
        return "http://\(reachable.contains(":") ? "[\(reachable)]" : reachable):\(port)"
    }

    var front: Front? { origins.front }

    func redirectURI(of client: AdministrationSources.Client) -> String {
        client.redirectURI ?? base.withLock { $0 } + "/callback"
    }

    /// Returns the URL of the page that signs the client in. If the redirect URI leads to this listener, the URL has
    /// the same origin, so that the browser sends the page's cookies after the redirect.
    func loginURL(of client: AdministrationSources.Client) -> String {
        let base = ownOrigin(of: redirectURI(of: client))?.base ?? base.withLock { $0 }
        return base + "/login/" + client.heimdallr.name
    }

    /// A redirect URI that leads to this listener.
    struct OwnOrigin {
        let url: WebURL
        /// Address of the page beside it.
        let base: String
        /// Path in the browser.
        var path: String { url.path.isEmpty ? "/" : String(url.path) }
        var route: String { String((url.start + path).dropFirst(base.count)) }
    }

    /// Splits a redirect URI that leads to this listener; returns `nil` for private schemes and foreign hosts.
    func ownOrigin(of redirectURI: String) -> OwnOrigin? {
        guard let url = try? WebURL(redirectURI), origins.answers(to: url.authority.host, listener: host) else {
            return nil
        }
        let start = String(url.start)
        let base = (origins.front?.url).flatMap { (start + url.path).hasPrefix($0 + "/") ? $0 : nil } ?? start
        // The front leads only addresses below its own here.
        if base == start, let front = origins.front, front.origin == url.origin, !front.path.isEmpty { return nil }
        return OwnOrigin(url: url, base: base)
    }

    /// Whether a browser on another page can be sent to this redirect URI's page. A listener on loopback answers at its
    /// own port only. One that other machines reach may have another port outside, as that of a container.
    func isServed(_ redirectURI: String) -> Bool {
        guard let origin = ownOrigin(of: redirectURI) else { return false }
        guard origin.base != origins.front?.url, origin.url.scheme == .http, origin.url.authority.host.isLoopback,
            (try? WebURL(Self.base(host: host, port: "1")))?.authority.host.isLoopback == true, host != "0.0.0.0",
            host != "::"
        else { return true }
        return Int(origin.url.port) == port.load(ordering: .relaxed)
    }

    /// Returns the URL in the browser's address bar, for the checks in `Heimdallr.finishLogin`.
    func url(of request: ServerRequest, answer: String, redirectURI: String) -> String {
        if let front = origins.front, ownOrigin(of: redirectURI)?.base == front.url {
            return front.url + request.path + answer
        }
        return "\(redirectURI.prefix { $0 != ":" })://\(request.hosts.first ?? "")\(request.path)\(answer)"
    }

    /// Whether the browser is at the origin of its redirect URI. Behind a front that writes another Host, its form or
    /// its second request shows that.
    func isAt(_ origin: OwnOrigin, _ request: ServerRequest) -> Bool {
        if Self.isSame(request.hosts.first ?? "", origin.url) { return true }
        guard let front = origins.front, origin.base == front.url else { return false }
        return request.parameter("pass") != nil || request.values("Origin") == [front.origin]
    }

    /// Whether a Host field names host and port of this URL.
    static func isSame(_ host: String, _ url: WebURL) -> Bool {
        let asked = OriginPolicy.host(in: host).flatMap { _ in try? Authority(parsing: host) }
        return asked?.without(defaultPortOf: url.scheme) == url.authority.without(defaultPortOf: url.scheme)
    }
}
