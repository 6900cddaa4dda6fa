import Configuration
import CurlTransport
import HTTPMessage
import Reactor

/// Hosts to which a program connects without the proxy (`no_proxy`): this machine, and the proxy's listeners, because
/// programs use these as base URLs. No standard defines `no_proxy`: all clients understand names and addresses, few
/// understand ports and address blocks.
struct NoProxyList {
    private(set) var entries: [String] = []
    /// Inherited entries that a program should not have, each with the reason and the remedy.
    private(set) var warnings: [String] = []

    /// - Parameters:
    ///   - inherited: the values of `no_proxy` and `NO_PROXY`, which are kept.
    ///   - settings: the proxy's settings. Hosts of upstreams are not added, even if they are loopback.
    ///   - isEnclosed: whether all addresses lead the program to the proxy.
    init(extending inherited: [String?], for settings: Configuration, isEnclosed: Bool = false) {
        for text in inherited {
            for entry in (text ?? "").split(whereSeparator: { $0 == "," || $0 == " " }) { add(String(entry)) }
        }
        warn(isEnclosed ? [] : settings.upstreams.map(\.host.description), isEnclosed: isEnclosed)
        let upstreams = Set(settings.upstreams.filter { !$0.host.wildcard }.map(\.host.host))
        let loopback = ["localhost", "127.0.0.1", "[::1]"]
        for text in loopback where !Self.isHost(text, of: upstreams) { add(Self.bare(text)) }
        // 127.0.0.0/8 would include upstreams at loopback addresses.
        if !upstreams.contains(where: { if case .ipv4(let address) = $0 { address >> 24 == 127 } else { false } }) {
            add("127.0.0.0/8")
        }
        for case (.tcp(let host, let port), _) in settings.listeners
        where port != 0 && host != "0.0.0.0" && host != "::" {
            let text = host.contains(":") ? "[\(host)]" : host
            add(Self.isHost(text, of: upstreams) ? "\(text):\(port)" : host)
        }
    }

    var value: String { entries.joined(separator: ",") }

    /// Warns of inherited entries that keep the program from the proxy for an upstream, or that programs can't read.
    private mutating func warn(_ upstreams: [String], isEnclosed: Bool) {
        for entry in entries {
            if entry == "*" {
                if isEnclosed { continue }
                warnings.append("no_proxy has *, so the program will not use the proxy: unset it")
            } else if let host = upstreams.first(where: { Self.covers(entry, $0) }) {
                warnings.append(
                    "no_proxy has \(entry), so the program will reach the upstream \(host) without the proxy, and gets no "
                        + "token: take it out")
            } else if entry.contains("/"), entry.contains(":") {
                warnings.append("no_proxy has \(entry): Python's httpx fails with a block of IPv6: take it out")
            }
        }
    }

    /// Whether an entry means a host: by name, by a name's end with or without a dot or `*.`, by address or block. A port
    /// may follow.
    static func covers(_ entry: String, _ upstream: String) -> Bool {
        guard let host = try? Authority(parsing: upstream.hasPrefix("*.") ? String(upstream.dropFirst(2)) : upstream)
        else { return false }
        if entry.contains("/") {
            guard let block = AddressBlock(entry), let address = NumericAddress(host.host.bare) else {
                return false
            }
            return block.contains(address)
        }
        let plain = entry.hasPrefix("*.") ? entry.dropFirst(2) : entry.hasPrefix(".") ? entry.dropFirst() : entry[...]
        let bracketed = plain.count { $0 == ":" } > 1 && !plain.hasPrefix("[") ? "[\(plain)]" : String(plain)
        guard let named = try? Authority(parsing: bracketed) else { return false }
        if let port = named.port, let other = host.port, port != other { return false }
        guard case .name(let end) = named.host, case .name(let name) = host.host else { return named.host == host.host }
        return name == end || name.hasSuffix("." + end)
    }

    private mutating func add(_ entry: String) {
        if !entries.contains(entry) { entries.append(entry) }
    }

    private static func isHost(_ host: String, of upstreams: Set<Authority.Host>) -> Bool {
        (try? Authority(parsing: host)).map { upstreams.contains($0.host) } ?? false
    }

    private static func bare(_ host: String) -> String {
        host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    }
}
