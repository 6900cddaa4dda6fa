public import Configuration
public import Heimdallr
public import Reports

// Explanations of where the proxy would send a request.

extension RouteExplanation {
    /// - Parameters:
    ///   - url: absolute URL, as a program sends it to the proxy.
    ///   - fields: the request's further fields, `Name: value`.
    public init(_ configuration: Configuration, method: String, url: String, fields: [String] = []) {
        var explainer = RouteExplainer(configuration)
        self = explainer.explain(method: method, url: url, fields: fields)
    }

    /// - Parameter detail: replaces the problem's detail.
    init(_ problem: Problem, detail: String? = nil) {
        self = .refused(status: problem.status, word: problem.row.word, detail: detail ?? problem.detail)
    }
}

extension UpstreamRoute {
    /// - Parameter way: text appended to the rule, saying how a request reaches it.
    init(
        _ upstream: UpstreamSettings, index: Int, destination: String, isTrace: Bool, way: String, https: HTTPSTreatment
    ) {
        var rule = "upstreams[\(index)] \(upstream.host)"
        if !upstream.paths.isEmpty { rule += " paths \(upstream.paths.joined(separator: ", "))" }
        if !upstream.methods.isEmpty { rule += " methods \(upstream.methods.joined(separator: ", "))" }
        if !upstream.callers.isEmpty { rule += " callers \(upstream.callers)" }
        let isTrace = isTrace && upstream.injects
        guard !upstream.answersHere else {
            self.init(
                index: index, rule: rule + way, destination: "the proxy itself", client: nil, injection: "",
                unsigned: "the answer has \(upstream.ownAnswer)", https: https)
            return
        }
        self.init(
            index: index, rule: rule + way, destination: destination, client: isTrace ? nil : upstream.client,
            injection: isTrace ? "" : upstream.injectionText,
            unsigned: isTrace ? "TRACE carries no \(upstream.client == nil ? "credential" : "token")" : nil,
            https: https)
    }
}

extension ProxyServer {
    /// Explains where a request to `proxy.listen` would go.
    /// - Parameters:
    ///   - url: absolute URL, as a program sends it to the proxy.
    ///   - fields: the request's further fields, `Name: value`.
    public func explain(method: String, url: String, fields: [String]) -> RouteExplanation {
        var explainer = RouteExplainer(current.plan.configuration, listeners: baseURLs, own: own)
        return explainer.explain(method: method, url: url, fields: fields)
    }
}

extension TokenRefusal {
    /// Creates the refusal of a request when `client` has no token because of `error`.
    public init(_ error: HeimdallrError, client: String, signIn: SignInHint) {
        let problem = Problem(error, client: client) { _ in signIn }
        self.init(status: problem.status, title: problem.row.title, loginURL: problem.loginURL)
    }
}
