public import Configuration
import HTTPMessage
import Reports

/// What `check` shows of a configuration's rules. Where each leads is asked of the gate that judges requests, with a
/// request that the rule is for: what is shown is what happens.
public struct RouteListing: Sendable, Equatable {
    /// The most specific first.
    public private(set) var routes: [ResolvedRoute] = []
    /// Hosts that no rule names are forwarded, unsigned.
    public let forwardsOthers: Bool
    /// Where CONNECT may lead, as the configuration says it.
    public let tunnels: [TunnelRule]

    public init(_ configuration: Configuration) {
        var explainer = RouteExplainer(configuration)
        let strange = Self.strangeMethod(configuration)
        for route in configuration.resolvedRoutes {
            let upstream = configuration.upstreams[route.upstream]
            let methods = upstream.methods.isEmpty ? ["GET", strange] : upstream.methods
            routes.append(Self.judged(route, upstream, methods, &explainer))
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

    /// A host that nobody's rules name (RFC 2606).
    private static let stranger = "nobody.invalid"
    private static let labels = ["any", "some", "a-host"]

    /// One of which no rule speaks: it is for those that are for every method.
    private static func strangeMethod(_ configuration: Configuration) -> String {
        let known = Set(configuration.upstreams.flatMap(\.methods))
        var method = "ANOTHER"
        while known.contains(method) { method += "S" }
        return method
    }

    private static func judged(
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
                        method: method, url: "http://\(host)\(port)\(path.hasPrefix("//") ? "/" : path)")
                    first = first ?? said
                    guard let destination = said.destination(by: route.upstream) else { continue }
                    route.destination =
                        label.isEmpty ? destination : destination.replacing("//\(host)", with: "//*.\(pattern)")
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
    /// Where the upstream at `index` sends it; `nil`: no caller's request is for that one.
    fileprivate func destination(by index: Int) -> String? {
        switch self {
        case .upstream(let route): route.index == index ? route.destination : nil
        case .unmatched, .tunnel, .refused: nil
        case .callers(let some, let others):
            (some + [others]).lazy.compactMap { $0.destination(by: index) }.first
        }
    }
}
