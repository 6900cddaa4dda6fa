public import Configuration
import HTTPMessage

/// Where the proxy would send a request, told without sending it: by the same parser and the same table as requests.
public enum RouteExplanation: Sendable, Equatable {
    /// - Parameters:
    ///   - index: of the configuration's upstreams.
    ///   - destination: scheme and authority, and the path that is put in front.
    case upstream(index: Int, destination: String)
    /// `unmatched: forward`
    case unmatched(destination: String)
    /// The proxy answers by itself.
    case refused(status: Int, detail: String)
    /// It depends on who asks: the upstreams of some, the most specific first, then what everybody else gets.
    indirect case callers([RouteExplanation], others: RouteExplanation)

    /// - Parameter url: absolute, as a program would ask the proxy for it.
    public init(_ configuration: Configuration, method: String, url: String) {
        do throws(Problem) {
            self = try Self.explain(configuration, method, url)
        } catch {
            self.init(error)
        }
    }

    private static func explain(
        _ configuration: Configuration, _ method: String, _ url: String
    ) throws(Problem) -> RouteExplanation {
        let bytes = Array("\(method) \(url) HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8)
        let asked = try parse(bytes, maxBytes: configuration.proxy.maxHeaderBytes)
        let (scheme, authority) = (asked.scheme, asked.authority)
        let routes = RouteTable(configuration.upstreams)
        guard let rules = routes.rules(for: authority, scheme: scheme) else {
            guard configuration.proxy.unmatched == .forward else { throw Problem.unknownHost }
            if scheme == .https { throw Problem.schemeNotSupported }
            return .unmatched(destination: "http://\(authority)")
        }
        let (path, method) = (asked.path.range, asked.method.range)
        switch rules.match(path: bytes.span.extracting(path), method: bytes.span.extracting(method), caller: nil) {
        case .upstream:
            let choices = rules.choices(path: bytes.span.extracting(path), method: bytes.span.extracting(method))
            let climbs = PathRules.climbs(bytes.span.extracting(path))
            let others = upstream(choices.others, asked, climbs, configuration)
            guard !choices.some.isEmpty else { return others }
            return .callers(choices.some.map { upstream($0, asked, climbs, configuration) }, others: others)
        case .notCovered: throw Problem.notCovered
        case .notForCaller: throw Problem.notForCaller
        case .ambiguousPath: throw Problem.ambiguousPath
        case .unknownHost: throw Problem.unknownHost
        }
    }

    /// - Parameter index: `nil`: there is none for who asks.
    private static func upstream(
        _ index: Int?, _ asked: Asked, _ climbs: Bool, _ configuration: Configuration
    ) -> RouteExplanation {
        guard let index else { return RouteExplanation(.notForCaller) }
        if asked.isWholeServer, configuration.upstreams[index].isLimited { return RouteExplanation(.wholeServer) }
        if climbs, configuration.upstreams[index].isConfined { return RouteExplanation(.climbingPath) }
        if let url = configuration.upstreams[index].url {
            if asked.scheme == .https, url.scheme != .https { return RouteExplanation(.schemeNotSupported) }
            return .upstream(index: index, destination: url.description)
        }
        var wanted = asked.authority
        if wanted.port == 80 { wanted.port = nil }
        return .upstream(index: index, destination: "https://\(wanted)")
    }

    private init(_ problem: Problem) {
        self = .refused(status: problem.status, detail: problem.detail)
    }

    private struct Asked {
        var method: ByteRange
        var scheme: Scheme
        var authority: Authority
        var path: ByteRange
        /// RFC 9112, section 3.2.4.
        var isWholeServer: Bool
    }

    private static func parse(_ bytes: [UInt8], maxBytes: Int) throws(Problem) -> Asked {
        var head = RequestHead()
        do throws(MessageError) {
            let limits = HeadLimits(maxBytes: maxBytes, maxFields: 1)
            guard case .complete = try head.parse(bytes.span, limits: limits), head.methodKind != .connect,
                case .absolute(let scheme, let range, let path) = try RequestTarget(parsing: bytes.span, head: head)
            else { throw MessageError(detail: "Give a method and an absolute URL: GET http://HOST/PATH.") }
            return Asked(
                method: head.method, scheme: scheme, authority: try Authority(parsing: bytes.span, range), path: path,
                isWholeServer: head.methodKind == .options && path.isEmpty)
        } catch {
            throw Problem(error)
        }
    }
}
