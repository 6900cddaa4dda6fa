import Administration
import Configuration
import Proxy
import WireText

/// A good configuration as `check` shows it, for programs.
struct CheckReport {
    let settings: Configuration
    let source: ConfigurationSource
    let keys: KeyCheck
    var warnings: [ConfigurationError.Problem] = []

    var json: JSON {
        let listing = RouteListing(settings)
        return .object([
            .init("good", .bool(true)), .init("configuration", .string(source.name)), .init("problems", .array([])),
            .init("warnings", .array(warnings.map(Self.json))),
            .init("listeners", .array(listeners)),
            .init("users", Self.strings(settings.proxy.users.keys.sorted())),
            .init("administration", JSON(settings.admin.map { "\($0.listen)" })),
            .init("routes", .array(listing.routes.map(Self.json))),
            .init("other_hosts", .string(listing.forwardsOthers ? "forwarded unsigned" : "rejected")),
            .init(
                "tunnels",
                Self.strings(settings.proxy.connect == .tunnel ? listing.tunnels.map(\.description) : [])),
            .init("keys", .array(keys.findings.map(Self.json))),
            .init(
                "redirect_uris",
                .object(settings.redirectURIs.map { .init($0.client, .string($0.uri)) })),
        ])
    }

    /// A configuration that can't be used.
    static func json(of error: ConfigurationError, in source: ConfigurationSource) -> JSON {
        .object([
            .init("good", .bool(false)), .init("configuration", .string(source.name)),
            .init("problems", .array(error.problems.map(json))),
            .init("warnings", .array(error.warnings.map(json))),
        ])
    }

    private var listeners: [JSON] {
        settings.proxy.listen.map { Self.listener($0, upstream: nil) }
            + settings.upstreams.compactMap { upstream in
                upstream.listen.map { Self.listener($0, upstream: upstream.host.description) }
            }
    }

    private static func listener(_ address: ListenAddress, upstream: String?) -> JSON {
        .object([.init("address", .string("\(address)")), .init("upstream", JSON(upstream))])
    }

    private static func strings(_ texts: [String]) -> JSON { .array(texts.map { .string($0) }) }

    private static func json(_ route: ResolvedRoute) -> JSON {
        .object([
            .init("host", .string(route.host)), .init("path", .string(route.path)),
            .init("methods", .string(route.methods)), .init("callers", .string(route.callers)),
            .init("destination", .string(route.destination)), .init("client", .string(route.client)),
            .init("put_on_as", .string(route.injection)),
        ])
    }

    private static func json(_ problem: ConfigurationError.Problem) -> JSON {
        .object([
            .init("file", .string(problem.file)), .init("line", problem.line.map { .number($0) } ?? .null),
            .init("column", problem.column.map { .number($0) } ?? .null), .init("message", .string(problem.message)),
        ])
    }
}

extension Configuration {
    /// Redirect URIs to register at the authorization servers, by client.
    var redirectURIs: [(client: String, uri: String)] {
        guard case .tcp(let host, let port) = admin?.listen else { return [] }
        return clients.compactMap { client in
            guard client.grantType == .authorizationCode || client.grantType == .implicit else { return nil }
            return (client.name, client.redirectURI ?? AdministrationSettings.redirectURI(host: host, port: port))
        }
    }
}
