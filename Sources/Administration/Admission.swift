import HTTPMessage
import Reactor

/// Who may use the page, `/status` and `/events`. They hold no secret, but a web page in the user's browser should not get them:
/// neither by DNS rebinding (then Host is the page's own name) nor plainly (then Origin or Sec-Fetch-Site give it away).
struct Admission: Sendable {
    /// Beside loopback and the listener's own address.
    let hosts: [Authority.Host]

    enum Refusal: Error, Equatable {
        case noHost
        case foreignHost
        case foreignOrigin
        case foreignSite

        var problem: AdminProblem {
            switch self {
            case .noHost, .foreignHost: .foreignHost
            case .foreignOrigin, .foreignSite: .foreignPage
            }
        }

        var sentence: String {
            switch self {
            case .noHost: "The request has no Host field, or more than one."
            case .foreignHost:
                "This listener does not answer to that host. Ask for localhost, or list the name in admin.hosts."
            case .foreignOrigin, .foreignSite: "Another site's page may not read this."
            }
        }
    }

    /// - Parameters:
    ///   - hosts, origins, sites: every value of Host, Origin and Sec-Fetch-Site.
    ///   - own: the address that the request came in at.
    func check(hosts: [String], origins: [String], sites: [String], own: SocketAddress?) throws(Refusal) {
        let host = try checkHost(hosts, own: own)
        for origin in origins where !Self.isSame(origin: origin, host: host) { throw .foreignOrigin }
        // `none`: by the address bar. `same-site` is not enough: every port of localhost is one site.
        for site in sites where site != "same-origin" && site != "none" { throw .foreignSite }
    }

    /// The only Host, when it is one of ours.
    @discardableResult
    func checkHost(_ hosts: [String], own: SocketAddress?) throws(Refusal) -> String {
        guard let host = hosts.first, hosts.count == 1 else { throw .noHost }
        guard let asked = Self.host(in: host), answers(to: asked, own: own) else { throw .foreignHost }
        return host
    }

    /// The same for a host that is only spoken of.
    /// - Parameter listener: an address or a name that the listener has.
    func answers(to text: String, listener: String) -> Bool {
        guard let host = Self.host(in: text) else { return false }
        // A listener for every address has each of them.
        if listener == "0.0.0.0" || listener == "::", NumericAddress(host) != nil { return true }
        return host == .name(listener.lowercased())
            || answers(to: host, own: SocketAddress(numericHost: listener, port: 0))
    }

    private func answers(to host: Authority.Host, own: SocketAddress?) -> Bool {
        if host == .name("localhost") || hosts.contains(host) { return true }
        // A page can have any name, but not an address as its name: what follows stands for itself.
        guard let asked = NumericAddress(host) else { return false }
        return host.isLoopback || own.flatMap { NumericAddress($0) } == asked
    }

    /// The host of a Host field; `nil` when it can't be one. An empty port and the root's dot, which no browser sends, are
    /// refused too: the Origin would not be the same text.
    static func host(in text: String) -> Authority.Host? {
        guard !text.hasSuffix(":"), !text.hasSuffix("."), !text.contains(".:") else { return nil }
        return (try? Authority(parsing: text))?.host
    }

    /// An Origin (RFC 6454) is ours when it names the host that was asked; its scheme may be https where somebody in
    /// front ends TLS.
    private static func isSame(origin: String, host: String) -> Bool {
        for scheme in ["http://", "https://"] where origin.hasPrefix(scheme) {
            return origin.dropFirst(scheme.count).lowercased() == host.lowercased()
        }
        return false
    }
}

extension NumericAddress {
    /// `nil` for a name.
    fileprivate init?(_ host: Authority.Host) {
        switch host {
        case .name: return nil
        case .ipv4(let address): self.init(ipv4: address)
        case .ipv6(let high, let low): self.init(high: high, low: low)
        }
    }
}
