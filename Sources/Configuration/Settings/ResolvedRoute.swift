import HTTPMessage

/// A line of `heimdallr-proxy check`: the requests of a rule, their target and their token.
public struct ResolvedRoute: Sendable, Equatable, CustomStringConvertible {
    /// Index of the upstream in the configuration.
    public var upstream: Int
    /// Path prefix of the rule; `/` for every path.
    public var prefix: String
    /// `api.example.com:80,443`.
    public var host: String
    /// `/v1/…`; `/…` for every path.
    public var path: String
    /// `GET,POST`; `*` for every method.
    public var methods: String
    /// Conditions on fields, such as `mcp-name: get_* or list`; empty: none.
    public var fields: String
    /// `users alice; uids 1000`; empty for every caller.
    public var callers: String
    /// `https://api.example.com`, as configured. `RouteListing` replaces it by the destination that `Gate` finds.
    public var destination: String
    /// `client billing (client_credentials)`, `no client` if fixed credentials are injected, or `unsigned`.
    public var client: String
    /// `Authorization: Bearer <token>, X-Api-Key: <secret>`; empty if nothing is injected.
    public var injection: String
    /// `intercepted`, `tunnelled` or `refused`: the treatment of https:// URLs; empty if `Gate` was not asked.
    public var https = ""

    var cells: [String] {
        let https = https.isEmpty ? "" : "https: \(https)"
        return [host, path, methods, fields, callers, "-> " + destination, client, injection, https]
    }

    public var description: String { cells.filter { !$0.isEmpty }.joined(separator: "  ") }

    /// Formats routes as lines of a table.
    public static func table(_ routes: [ResolvedRoute]) -> [String] {
        let rows = routes.map(\.cells)
        guard let first = rows.first else { return [] }
        let widths = first.indices.map { column in rows.map { $0[column].count }.max() ?? 0 }
        return rows.map { row in
            var line = ""
            for (cell, width) in zip(row, widths) where width > 0 {
                line += cell + String(repeating: " ", count: width - cell.count + 2)
            }
            while line.hasSuffix(" ") { line.removeLast() }
            return line
        }
    }
}

extension Configuration {
    /// All rules, the most specific first: exact hosts before wildcards, long wildcards before short ones. For the same
    /// host, rules with a port come first, then long paths, then rules with methods, fields or callers.
    public var resolvedRoutes: [ResolvedRoute] {
        let rules = upstreams.enumerated().flatMap { index, upstream in
            (upstream.paths.isEmpty ? ["/"] : upstream.paths).map { (upstream: upstream, index: index, path: $0) }
        }
        return rules.enumerated().map { (rule: $1, order: Self.order($1.upstream, path: $1.path, $0)) }
            .sorted { one, other in
                let (left, right) = (one.order, other.order)
                return left.host == right.host ? left.conditions < right.conditions : left.host < right.host
            }
            .map { route($0.rule.upstream, $0.rule.index, path: $0.rule.path) }
    }

    /// Returns the sort keys of a rule's host and of its conditions.
    private static func order(
        _ upstream: UpstreamSettings, path: String, _ offset: Int
    ) -> (host: (Int, Int, String, Int), conditions: (Int, String, Int, Int, Int, Int)) {
        let (host, name) = (upstream.host, upstream.host.host.description)
        func rank(_ isForAll: Bool) -> Int { isForAll ? 1 : 0 }
        return (
            (host.wildcard ? 1 : 0, host.wildcard ? -name.utf8.count : 0, name, -Int(host.port ?? 0)),
            (
                -path.split(separator: "/").count, path, rank(upstream.methods.isEmpty), rank(upstream.fields.isEmpty),
                rank(upstream.callers.isEmpty), offset
            )
        )
    }

    private func route(_ upstream: UpstreamSettings, _ index: Int, path: String) -> ResolvedRoute {
        let host = upstream.host
        let prefix = path.hasSuffix("/") ? path : path + "/"
        return ResolvedRoute(
            upstream: index, prefix: path, host: host.port == nil ? "\(host):80,443" : host.description,
            path: prefix + "…",
            methods: upstream.methods.isEmpty ? "*" : upstream.methods.joined(separator: ","),
            fields: upstream.fields.map { "\($0.name): \($0.patterns.joined(separator: " or "))" }
                .joined(separator: "; "),
            callers: upstream.callers.description,
            destination: upstream.answersHere
                ? "the proxy itself" : upstream.url?.description ?? "https://\(host)",
            client: upstream.client.map { name in
                let grant = clients.first { $0.name == name }?.grantType.description
                return "client \(name)" + (grant.map { " (\($0))" } ?? "")
            } ?? (upstream.injects ? "no client" : "unsigned"),
            injection: upstream.answersHere ? upstream.ownAnswer : upstream.injectionText)
    }
}
