import HTTPMessage
import WireText

/// Grammars of hosts, listeners and address blocks.
extension Grammar {
    /// A host with an optional port, canonical.
    static func authority(_ text: String) throws(BadValue) -> Authority {
        do {
            return try Authority(parsing: text)
        } catch {
            if let fault = portFault(text) { throw fault }
            if !text.utf8.allSatisfy({ $0 < 0x80 }) {
                throw BadValue("write internationalised names as punycode (xn--…)")
            }
            throw BadValue("write a host such as api.example.com or api.example.com:8443", fits: hosts)
        }
    }

    /// Returns the fault of an authority whose port alone is wrong; `nil` for any other authority.
    static func portFault(_ text: some StringProtocol) -> BadValue? {
        guard let colon = text.lastIndex(of: ":"), case let port = text[text.index(after: colon)...],
            !port.isEmpty, port.utf8.allSatisfy({ ASCII.isDigit($0) }), (UInt16(port) ?? 0) == 0,
            let host = try? Authority(parsing: String(text[..<colon])), host.port == nil
        else { return nil }
        return BadValue("write a port from 1 to 65535")
    }

    private static let hosts = ValueKind.text(matching: #"^[^*/\s]+$"#)

    /// A host without a port.
    static func host(_ text: String) throws(BadValue) -> Authority.Host {
        guard let authority = try? Authority(parsing: text), authority.port == nil else {
            throw BadValue("write a host name such as api.example.com, without a port", fits: hosts)
        }
        return authority.host
    }

    /// A host as sockets and certificates spell it: IPv6 without brackets.
    static func hostName(_ text: String) throws(BadValue) -> String { try host(text).bare }

    /// A host or pattern of an upstream: `api.example.com`, `*.example.com`, each with an optional port.
    static func hostPattern(_ text: String) throws(BadValue) -> HostPattern {
        if text.contains("://"), let slashes = text.firstRange(of: "//") {
            throw BadValue("write \(hostOnly(text[slashes.upperBound...])), without scheme and path")
        }
        if text.contains("/") { throw BadValue("write \(hostOnly(text[...])) here, and the path under `paths`") }
        guard text.contains("*") else {
            do throws(BadValue) {
                let authority = try authority(text)
                return .init(wildcard: false, host: authority.host, port: authority.port)
            } catch {
                throw error.fitting(.text(matching: #"^(\*\.)?[^*/\s]+$"#))
            }
        }
        let advice = BadValue("write * as the whole first label only, as in \"*.example.com\"")
        guard text.hasPrefix("*."), !text.dropFirst(2).contains("*") else { throw advice }
        guard let authority = try? Authority(parsing: String(text.dropFirst(2))), case .name = authority.host else {
            throw portFault(text.dropFirst(2)) ?? advice
        }
        return .init(wildcard: true, host: authority.host, port: authority.port)
    }

    private static func hostOnly(_ text: Substring) -> Substring { text.prefix { !"/?#".contains($0) } }

    /// `host:port`, `[::1]:port` or `unix:/path`.
    static func listener(_ text: String) throws(BadValue) -> ListenAddress {
        if text.hasPrefix("unix:") {
            guard text.dropFirst(5).hasPrefix("/") else { throw BadValue("write unix: and an absolute path") }
            return .unix(path: try socketPath(text.dropFirst(5)), mode: nil)
        }
        let advice = BadValue(
            "write host:port, such as 127.0.0.1:8080 or [::1]:8080",
            matching: #"^(unix:/.+|(\[[^\]]+\]|[^*:/\[\]][^:/\[\]]*):[0-9]+)$"#)
        guard let colon = text.lastIndex(of: ":") else { throw advice }
        let portText = text[colon...].dropFirst()
        guard let number = digits(portText) else { throw advice }
        guard let port = UInt16(exactly: number) else { throw BadValue("write a port from 0 to 65535") }
        let hostText = text[..<colon]
        if hostText.isEmpty || hostText == "*" {
            throw BadValue("write 127.0.0.1:\(port) for this machine only, or 0.0.0.0:\(port) for every address")
        }
        // `Authority` accepts a final colon without a port. A listener's host may not end in a colon.
        guard !hostText.hasSuffix(":"), let authority = try? Authority(parsing: String(hostText)), authority.port == nil
        else { throw advice }
        return .tcp(host: authority.host.bare, port: port)
    }

    /// `host:port` or `[::1]:port`.
    static func tcpListener(_ text: String) throws(BadValue) -> ListenAddress {
        let address = try listener(text)
        guard case .tcp = address else { throw BadValue("write host:port, such as 10.0.0.1:8443") }
        return address
    }

    /// `10.0.0.0/8` or `fd00::/8`.
    static func addressBlock(_ text: String) throws(BadValue) -> AddressBlock {
        let advice = BadValue("write an address block such as 10.0.0.0/8 or fd00::/8", matching: "^[^/]+/[0-9]+$")
        guard let slash = text.lastIndex(of: "/"), let length = digits(text[slash...].dropFirst()) else { throw advice }
        let address = String(text[..<slash])
        let inBrackets = address.contains(":") ? "[\(address)]" : address
        guard let authority = try? Authority(parsing: inBrackets), authority.port == nil else { throw advice }
        if let block = AddressBlock(authority.host, length: length) { return block }
        switch authority.host {
        case .ipv4: throw BadValue("write a prefix length from 0 to 32")
        case .ipv6: throw BadValue("write a prefix length from 0 to 128")
        case .name: throw advice
        }
    }

    /// `host:port`, or `*` for any target.
    static func tunnel(_ text: String) throws(BadValue) -> TunnelRule {
        if text == "*" { return .any }
        guard let authority = try? Authority(parsing: text), authority.port != nil else {
            throw portFault(text)
                ?? BadValue(
                    "write HOST:PORT such as github.com:443, or \"*\" for any", matching: #"^(\*|[^*/]+:[0-9]+)$"#)
        }
        return .authority(authority)
    }

    /// Whether the host is a loopback address, `localhost`, or a name below `localhost`. Looks up no name.
    static func isLoopback(_ host: String) -> Bool {
        (try? Authority(parsing: host.contains(":") ? "[\(host)]" : host))?.host.isLoopback == true
    }

    static func isUnspecified(_ host: String) -> Bool { host == "0.0.0.0" || host == "::" }
}
