public import Configuration
import CurlTransport
public import Heimdallr
import Reactor

/// Where the proxy would send a request, told without sending it: by the same parser and the same gate as requests.
public enum RouteExplanation: Sendable, Equatable {
    /// - Parameters:
    ///   - index: of the configuration's upstreams.
    ///   - destination: scheme and authority, and the path that is put in front.
    case upstream(index: Int, destination: String)
    /// The same, asked for at the upstream's own `listen`.
    case ownListener(index: Int, destination: String)
    /// `unmatched: forward`
    case unmatched(destination: String)
    /// The proxy answers by itself.
    case refused(status: Int, detail: String)
    /// It depends on who asks: the upstreams of some, the most specific first, then what everybody else gets.
    indirect case callers([RouteExplanation], others: RouteExplanation)

    /// - Parameter url: absolute, as a program would ask the proxy for it.
    public init(_ configuration: Configuration, method: String, url: String) {
        self.init(configuration, method: method, url: url, listeners: [], own: [])
    }

    /// - Parameters:
    ///   - listeners: upstreams' own, where they really are.
    ///   - own: all listeners of this process.
    init(
        _ configuration: Configuration, method: String, url: String, listeners: [UpstreamListener], own: OwnListeners
    ) {
        var explainer = RouteExplainer(configuration, listeners: listeners, own: own)
        self = explainer.explain(method: method, url: url)
    }

    init(_ problem: Problem) {
        self = .refused(status: problem.status, detail: problem.detail)
    }
}

extension ProxyServer {
    /// Where a request would go, asked for through `proxy.listen`.
    /// - Parameter url: absolute, as a program would ask the proxy for it.
    public func explain(method: String, url: String) -> RouteExplanation {
        RouteExplanation(configuration, method: method, url: url, listeners: baseURLs, own: own)
    }
}

/// What a program gets that wants a token which can't be had.
public struct RefusedRequest: Sendable, Equatable {
    public let status: Int
    public let title: String
    /// Where a browser begins the login that is wanted.
    public let loginURL: String?

    public init(_ error: HeimdallrError, client: String, signIn: SignInHint) {
        let problem = Problem(error, client: client) { _ in signIn }
        status = problem.status
        title = problem.title
        loginURL = problem.loginURL
    }
}
