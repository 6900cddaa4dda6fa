import Configuration
import HTTPMessage

/// Hosts that a program connects to without the proxy (`no_proxy`): this machine with its services, and the proxy's
/// listeners, which are base URLs. There is no standard for it: all clients understand names and addresses, few understand
/// ports and blocks.
struct NoProxyList {
    private(set) var entries: [String] = []

    /// - Parameters:
    ///   - inherited: what `no_proxy` and `NO_PROXY` say already; it stays.
    ///   - settings: hosts that these sign are not left out, loopback or not.
    init(extending inherited: [String?], for settings: Configuration) {
        for text in inherited {
            for entry in (text ?? "").split(whereSeparator: { $0 == "," || $0 == " " }) { add(String(entry)) }
        }
        let wanted = Set(settings.upstreams.filter { !$0.host.wildcard }.map(\.host.host))
        let loopback = ["localhost", "127.0.0.1", "[::1]"]
        for text in loopback where !Self.isWanted(text, wanted) { add(Self.bare(text)) }
        // A block would include those.
        if !wanted.contains(where: { if case .ipv4(let address) = $0 { address >> 24 == 127 } else { false } }) {
            add("127.0.0.0/8")
        }
        let listeners = settings.proxy.listen + settings.upstreams.compactMap(\.listen)
        for case .tcp(let host, let port) in listeners where port != 0 && host != "0.0.0.0" && host != "::" {
            let text = host.contains(":") ? "[\(host)]" : host
            add(Self.isWanted(text, wanted) ? "\(text):\(port)" : host)
        }
    }

    var value: String { entries.joined(separator: ",") }

    /// Whether nothing at all would come to the proxy.
    var takesEverything: Bool { entries.contains("*") }

    private mutating func add(_ entry: String) {
        if !entries.contains(entry) { entries.append(entry) }
    }

    private static func isWanted(_ host: String, _ wanted: Set<Authority.Host>) -> Bool {
        (try? Authority(parsing: host)).map { wanted.contains($0.host) } ?? false
    }

    private static func bare(_ host: String) -> String {
        host.hasPrefix("[") ? String(host.dropFirst().dropLast()) : host
    }
}
