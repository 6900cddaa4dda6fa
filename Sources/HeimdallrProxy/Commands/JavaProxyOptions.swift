import HTTPMessage

/// Java's proxy, which it reads from properties alone ("Networking Properties" of the Java API). A later option replaces
/// an earlier one. The properties have no password.
enum JavaProxyOptions {
    /// Returns the value of `JAVA_TOOL_OPTIONS` with the proxy's properties behind the program's own options.
    /// - Parameters:
    ///   - proxy: the proxy's URL.
    ///   - tls: whether the proxy is for https, too.
    static func adding(
        to environment: [String: String], _ proxy: String, _ direct: NoProxyList, tls: Bool
    ) -> String {
        var options = environment["JAVA_TOOL_OPTIONS"].map { $0.isEmpty ? [] : [$0] } ?? []
        guard let url = try? WebURL(proxy, allowing: .userInfo) else { return options.joined() }
        for scheme in tls ? ["http", "https"] : ["http"] {
            options += ["-D\(scheme).proxyHost=\(url.authority.host)", "-D\(scheme).proxyPort=\(url.port)"]
        }
        options.append("-Dhttp.nonProxyHosts=\(direct.entries.compactMap(pattern).joined(separator: "|"))")
        return options.joined(separator: " ")
    }

    /// Returns Java's pattern for an entry of `no_proxy`; `nil` for what no pattern means: a port, and most blocks.
    private static func pattern(_ entry: String) -> String? {
        guard !entry.contains(where: { $0 == "|" || $0 == "\"" || $0 == "'" || $0.isWhitespace }) else { return nil }
        if let slash = entry.firstIndex(of: "/") {
            let numbers = entry[..<slash].split(separator: ".")
            guard numbers.count == 4, let bits = Int(entry[entry.index(after: slash)...]), [8, 16, 24].contains(bits)
            else { return nil }
            return numbers.prefix(bits / 8).joined(separator: ".") + ".*"
        }
        if entry.contains(":") {
            let isAddress = entry.count { $0 == ":" } > 1
            return isAddress ? (entry.hasPrefix("[") ? entry : "[\(entry)]") : nil
        }
        return entry.hasPrefix(".") ? "*" + entry : entry
    }
}
