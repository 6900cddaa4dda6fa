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

    /// - Parameter url: absolute, as a program would ask the proxy for it.
    public init(_ configuration: Configuration, method: String, url: String) {
        do throws(Problem) {
            self = try Self.explain(configuration, method, url)
        } catch {
            self = .refused(status: error.status, detail: error.detail)
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
        switch rules.match(
            path: bytes.span.extracting(asked.path.range), method: bytes.span.extracting(asked.method.range),
            caller: nil)
        {
        case .upstream(let index):
            let upstream = configuration.upstreams[index]
            if let url = upstream.url {
                if scheme == .https, url.scheme != .https { throw Problem.schemeNotSupported }
                return .upstream(index: index, destination: url.description)
            }
            var wanted = authority
            if wanted.port == 80 { wanted.port = nil }
            return .upstream(index: index, destination: "https://\(wanted)")
        case .notCovered: throw Problem.notCovered
        case .notForCaller: throw Problem.notForCaller
        case .ambiguousPath: throw Problem.ambiguousPath
        case .unknownHost: throw Problem.unknownHost
        }
    }

    private struct Asked {
        var method: ByteRange
        var scheme: Scheme
        var authority: Authority
        var path: ByteRange
    }

    private static func parse(_ bytes: [UInt8], maxBytes: Int) throws(Problem) -> Asked {
        var head = RequestHead()
        do throws(MessageError) {
            let limits = HeadLimits(maxBytes: maxBytes, maxFields: 1)
            guard case .complete = try head.parse(bytes.span, limits: limits), head.methodKind != .connect,
                case .absolute(let scheme, let range, let path) = try RequestTarget(parsing: bytes.span, head: head)
            else { throw MessageError(detail: "Give a method and an absolute URL: GET http://HOST/PATH.") }
            return Asked(
                method: head.method, scheme: scheme, authority: try Authority(parsing: bytes.span, range), path: path)
        } catch {
            throw Problem(error)
        }
    }
}
