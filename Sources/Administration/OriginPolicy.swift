import HTTPMessage
import Reactor

/// Refuses other sites' requests for the page, `/status` and `/events`. The Host field reveals DNS rebinding. Origin
/// and Sec-Fetch-Site reveal a request from another site.
struct OriginPolicy: Sendable {
    /// Allowed hosts besides loopback and the listener's address.
    let hosts: [Authority.Host]
    /// The front before this listener, whose page is ours, whatever Host the front writes.
    let front: Front?

    init(hosts: [Authority.Host], front: Front? = nil) {
        self.hosts = hosts + (front.map { [$0.host] } ?? [])
        self.front = front
    }

    enum Refusal: Error, Equatable {
        case noHost
        case foreignHost
        case foreignPage

        var problem: AdminProblem {
            switch self {
            case .noHost, .foreignHost: .foreignHost
            case .foreignPage: .foreignPage
            }
        }

        var sentence: String {
            switch self {
            case .noHost: "The request has no Host field, or more than one."
            case .foreignHost:
                "This listener does not answer to that host. Ask for localhost, or list the name in admin.hosts."
            case .foreignPage: "Another site's page may not read this."
            }
        }
    }

    /// - Parameters:
    ///   - hosts, origins, sites: all values of Host, Origin and Sec-Fetch-Site.
    ///   - own: the connection's local address.
    func check(hosts: [String], origins: [String], sites: [String], own: SocketAddress?) throws(Refusal) {
        let host = try checkHost(hosts, own: own)
        for origin in origins where origin != front?.origin && !Self.isSame(origin: origin, host: host) {
            throw .foreignPage
        }
        // `none` means the address bar. `same-site` is refused, because all ports of localhost are one site.
        for site in sites where site != "same-origin" && site != "none" { throw .foreignPage }
    }

    /// - Returns: the value of the only Host field.
    @discardableResult
    func checkHost(_ hosts: [String], own: SocketAddress?) throws(Refusal) -> String {
        guard let host = hosts.first, hosts.count == 1 else { throw .noHost }
        guard let asked = Self.host(in: host), answers(to: asked, own: own) else { throw .foreignHost }
        return host
    }

    /// Whether the listener answers to this host.
    /// - Parameter listener: its configured address or name.
    func answers(to host: Authority.Host, listener: String) -> Bool {
        // A wildcard listener may be reached at any address.
        if listener == "0.0.0.0" || listener == "::", NumericAddress(host) != nil { return true }
        return host == .name(listener.lowercased())
            || answers(to: host, own: SocketAddress(numericHost: listener, port: 0))
    }

    private func answers(to host: Authority.Host, own: SocketAddress?) -> Bool {
        if host == .name("localhost") || hosts.contains(host) { return true }
        // DNS rebinding gives a foreign page any name as its host, but not an address of this machine.
        guard let asked = NumericAddress(host) else { return false }
        return host.isLoopback || own.flatMap { NumericAddress($0) } == asked
    }

    /// Returns the host of a Host field; `nil` if the field is invalid, or has an empty port or a final dot.
    static func host(in text: String) -> Authority.Host? {
        guard !text.hasSuffix(":"), !text.hasSuffix("."), !text.contains(".:") else { return nil }
        return (try? Authority(parsing: text))?.host
    }

    /// Whether an Origin (RFC 6454) names the requested host. Behind a TLS proxy, the Origin's scheme is https.
    private static func isSame(origin: String, host: String) -> Bool {
        ["http", "https"].contains { origin.lowercased() == "\($0)://\(host.lowercased())" }
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
