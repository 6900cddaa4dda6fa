public import Configuration
import HTTPMessage
import Reports

/// The rules as `check` shows them. Their destinations come from the gate that judges real requests.
public struct RouteListing: Sendable, Equatable {
    /// Most specific rule first.
    public private(set) var routes: [ResolvedRoute] = []
    /// Whether requests for hosts without a rule are forwarded, without a credential.
    public let forwardsOthers: Bool
    /// Configured targets of CONNECT that the gate admits.
    public let tunnels: [TunnelRule]

    public init(_ configuration: Configuration) {
        var explainer = RouteExplainer(configuration)
        let strange = Self.strangeMethod(configuration)
        for route in configuration.resolvedRoutes {
            let upstream = configuration.upstreams[route.upstream]
            let methods = upstream.methods.isEmpty ? ["GET", strange] : upstream.methods
            routes.append(Self.withDestination(route, upstream, methods, &explainer))
        }
        if case .unmatched = explainer.explain(method: "GET", url: "http://\(Self.stranger)/") {
            forwardsOthers = true
        } else {
            forwardsOthers = false
        }
        tunnels = configuration.proxy.tunnels.filter {
            explainer.admitsTunnel(to: $0 == .any ? "\(Self.stranger):443" : $0.description)
        }
    }

    /// A host without a rule (RFC 2606).
    private static let stranger = "nobody.invalid"
    private static let labels = ["any", "some", "a-host"]

    /// Returns a method that no rule names. Only rules for all methods match it.
    private static func strangeMethod(_ configuration: Configuration) -> String {
        let known = Set(configuration.upstreams.flatMap(\.methods))
        var method = "ANOTHER"
        while known.contains(method) { method += "S" }
        return method
    }

    private static func withDestination(
        _ route: ResolvedRoute, _ upstream: UpstreamSettings, _ methods: [String], _ explainer: inout RouteExplainer
    ) -> ResolvedRoute {
        var route = route
        let pattern = upstream.host.host.description
        let port = upstream.host.port.map { ":\($0)" } ?? ""
        var first: RouteExplanation?
        for label in upstream.host.wildcard ? labels : [""] {
            let host = label.isEmpty ? pattern : "\(label).\(pattern)"
            for path in [route.prefix, route.prefix + "/", route.prefix + "/any"] {
                for method in methods {
                    let said = explainer.explain(
                        method: method, url: "http://\(host)\(port)\(path.hasPrefix("//") ? "/" : path)",
                        fields: upstream.fields.compactMap(\.example))
                    first = first ?? said
                    guard let found = said.route(by: route.upstream) else { continue }
                    route.destination =
                        label.isEmpty
                        ? found.destination : found.destination.replacing("//\(host)", with: "//*.\(pattern)")
                    route.https = found.https.rawValue
                    return route
                }
            }
        }
        if case .refused(let status, _, let detail) = first {
            route.destination = "nowhere: \(status) \(detail)"
        } else {
            route.destination = "nowhere: other rules take all its requests"
        }
        return route
    }
}

extension RouteExplanation {
    /// Returns the route if the upstream at `index` takes the request of some caller; else `nil`.
    fileprivate func route(by index: Int) -> UpstreamRoute? {
        switch self {
        case .upstream(let route): route.index == index ? route : nil
        case .unmatched, .tunnel, .refused: nil
        case .callers(let some, let others):
            (some + [others]).lazy.compactMap { $0.route(by: index) }.first
        }
    }
}

extension FieldRule {
    /// A field that the rule accepts.
    fileprivate var example: String? {
        patterns.first.map { "\(name): \($0.hasSuffix("*") ? $0.dropLast() + "any" : $0)" }
    }
}
