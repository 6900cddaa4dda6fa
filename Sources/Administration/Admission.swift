import Reactor

/// Who may use the page, `/status` and `/events`. They hold no secret, but a web page in the user's browser should not get them:
/// neither by DNS rebinding (then Host is the page's own name) nor plainly (then Origin or Sec-Fetch-Site give it away).
struct Admission: Sendable {
    /// Beside loopback and the listener's own address, in lower case.
    let hosts: [String]

    init(hosts: [String]) { self.hosts = hosts.map { $0.lowercased() } }

    enum Refusal: Error, Equatable {
        case noHost
        case foreignHost
        case foreignOrigin
        case foreignSite

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
        guard answers(to: host, own: own) else { throw .foreignHost }
        return host
    }

    /// The same for a host that is only spoken of.
    /// - Parameter listener: an address or a name that the listener has.
    func answers(to host: String, listener: String) -> Bool {
        guard let name = Self.name(in: host) else { return false }
        // A listener for every address has each of them.
        if listener == "0.0.0.0" || listener == "::", SocketAddress(numericHost: name, port: 0) != nil {
            return true
        }
        return name == listener.lowercased()
            || answers(to: host, own: SocketAddress(numericHost: listener, port: 0))
    }

    private func answers(to host: String, own: SocketAddress?) -> Bool {
        guard let name = Self.name(in: host) else { return false }
        if name == "localhost" || hosts.contains(name) { return true }
        // A page can have any name, but not an address as its name: what follows stands for itself.
        guard let asked = SocketAddress(numericHost: name, port: 0) else { return false }
        return asked.isLoopback || own.flatMap { NumericAddress($0) } == NumericAddress(asked)
    }

    /// Lower case, without port and brackets; `nil` when it can't be a host.
    static func name(in host: String) -> String? {
        var text = host.lowercased()[...]
        if text.hasPrefix("[") {
            guard let end = text.firstIndex(of: "]") else { return nil }
            let port = text[text.index(after: end)...]
            guard port.isEmpty || port.first == ":" && isPort(port.dropFirst()) else { return nil }
            return String(text[text.index(after: text.startIndex)..<end])
        }
        if let colon = text.firstIndex(of: ":") {
            guard isPort(text[colon...].dropFirst()) else { return nil }
            text = text[..<colon]
        }
        let isPlain = text.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."),
                UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
        return isPlain && !text.isEmpty ? String(text) : nil
    }

    private static func isPort(_ text: Substring) -> Bool {
        !text.isEmpty && text.utf8.count <= 5
            && text.utf8.allSatisfy { $0 >= UInt8(ascii: "0") && $0 <= UInt8(ascii: "9") }
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

extension SocketAddress {
    /// 127.0.0.0/8 and ::1, in these forms.
    fileprivate var isLoopback: Bool {
        switch kind {
        case .ipv4(let address, _): address >> 24 == 127
        case .ipv6(let high, let low, _, _): high == 0 && low == 1
        case .unix: true
        }
    }
}
