import HTTPMessage

/// One line of `heimdallr-proxy check`: the requests of a rule, their target and their token.
public struct ResolvedRoute: Sendable, Equatable, CustomStringConvertible {
    /// Index of the configuration's upstream.
    public var upstream: Int
    /// Prefix of its paths; `/` for every path.
    public var prefix: String
    /// `api.example.com:80,443`.
    public var host: String
    /// `/v1/…`; `/…` for every path.
    public var path: String
    /// `GET,POST`; `*` for every method.
    public var methods: String
    /// `mcp-name: get_* or list`; empty for every request.
    public var fields: String
    /// `users alice; uids 1000`; empty for every caller.
    public var callers: String
    /// `https://api.example.com`, as configured. The running proxy may know more.
    public var destination: String
    /// `client billing (client_credentials)`, `no client` where fixed credentials are put on, or `unsigned`.
    public var client: String
    /// `Authorization: Bearer <token>, X-Api-Key: <secret>`; empty when unsigned.
    public var injection: String

    var cells: [String] { [host, path, methods, fields, callers, "-> " + destination, client, injection] }

    public var description: String { cells.filter { !$0.isEmpty }.joined(separator: "  ") }

    /// As lines of a table.
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
    /// Every rule, the most specific first: exact hosts before wildcards, long wildcards before short ones. Within one
    /// host, rules with a port come first, then long paths, then rules with methods.
    public var resolvedRoutes: [ResolvedRoute] {
        let rules = upstreams.enumerated().flatMap { index, upstream in
            (upstream.paths.isEmpty ? ["/"] : upstream.paths).map { (upstream: upstream, index: index, path: $0) }
        }
        return rules.enumerated().sorted { one, other in
            let (left, right) = (one.element, other.element)
            let (host, otherHost) = (left.upstream.host, right.upstream.host)
            if host.wildcard != otherHost.wildcard { return otherHost.wildcard }
            let (name, otherName) = (host.host.description, otherHost.host.description)
            if name != otherName {
                if host.wildcard, name.utf8.count != otherName.utf8.count {
                    return name.utf8.count > otherName.utf8.count
                }
                return name < otherName
            }
            if host.port != otherHost.port { return (host.port ?? 0) > (otherHost.port ?? 0) }
            let (depth, otherDepth) = (left.path.split(separator: "/").count, right.path.split(separator: "/").count)
            if depth != otherDepth { return depth > otherDepth }
            if left.path != right.path { return left.path < right.path }
            if left.upstream.methods.isEmpty == right.upstream.methods.isEmpty,
                left.upstream.callers.isEmpty != right.upstream.callers.isEmpty
            {
                return right.upstream.callers.isEmpty
            }
            if left.upstream.fields.isEmpty != right.upstream.fields.isEmpty { return right.upstream.fields.isEmpty }
            if left.upstream.methods.isEmpty != right.upstream.methods.isEmpty { return right.upstream.methods.isEmpty }
            return one.offset < other.offset
        }.map { route($0.element.upstream, $0.element.index, path: $0.element.path) }
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
            destination: upstream.url?.description ?? "https://\(host)",
            client: upstream.client.map { name in
                let grant = clients.first { $0.name == name }?.grantType.description
                return "client \(name)" + (grant.map { " (\($0))" } ?? "")
            } ?? (upstream.injects ? "no client" : "unsigned"),
            injection: upstream.injectionText)
    }
}

extension ClientSettings.GrantType: CustomStringConvertible {
    /// The `grant_type` of token requests; for grants without one, the configuration's name.
    public var description: String {
        switch self {
        case .clientCredentials: "client_credentials"
        case .password: "password"
        case .refreshToken: "refresh_token"
        case .authorizationCode: "authorization_code"
        case .implicit: "implicit"
        case .deviceCode: "device_code"
        case .jwtBearer: "urn:ietf:params:oauth:grant-type:jwt-bearer"
        case .saml2Bearer: "urn:ietf:params:oauth:grant-type:saml2-bearer"
        case .tokenExchange: "urn:ietf:params:oauth:grant-type:token-exchange"
        case .githubApp: "github_app"
        case .extension(let uri): uri
        }
    }
}
