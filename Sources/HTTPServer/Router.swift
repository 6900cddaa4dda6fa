import WireText

/// A table of handlers by method and path. Only paths in the table are answered.
public struct Router: Sendable {
    public typealias Handler = @Sendable (ServerRequest, Parameters) async -> ServerResponse
    /// Segments of the path that matched a name in braces, percent-decoded.
    public typealias Parameters = [String: String]

    private struct Route: Sendable {
        let method: String
        let segments: [Segment]
        let handler: Handler
    }

    private enum Segment: Sendable {
        case literal(String)
        case parameter(String)
    }

    private var routes: [Route] = []

    public init() {}

    /// - Parameters:
    ///   - method: `GET` also answers HEAD.
    ///   - pattern: path. A segment in braces matches any segment, such as `/login/{client}`.
    public mutating func on(_ method: String, _ pattern: String, _ handler: @escaping Handler) {
        routes.append(Route(method: method, segments: Self.segments(of: pattern), handler: handler))
    }

    /// The literal first segments of all routes. Paths that a configuration adds must not begin with them.
    public var reservedNames: Set<String> {
        Set(routes.compactMap { if case .literal(let name) = $0.segments.first { name } else { nil } })
    }

    public enum Match: Sendable {
        case route(Handler, Parameters)
        /// The path has routes, for these methods only.
        case otherMethods([String])
        case nothing
    }

    /// Answers 404 for a path without routes, 405 for a method without a route on this path.
    public func respond(_ request: ServerRequest) async -> ServerResponse {
        switch match(request) {
        case .route(let handler, let parameters): return await handler(request, parameters)
        case .nothing: return .plain(404, "There is nothing at this address.\n")
        case .otherMethods(let allowed):
            var response = ServerResponse.plain(405, "This address does not support the request's method.\n")
            response.set("Allow", allowed.joined(separator: ", "))
            return response
        }
    }

    public func match(_ request: ServerRequest) -> Match {
        var allowed: [String] = []
        for route in routes {
            guard let parameters = Self.match(route.segments, request.path) else { continue }
            if route.method == request.method || route.method == "GET" && request.method == "HEAD" {
                return .route(route.handler, parameters)
            }
            for method in route.method == "GET" ? ["GET", "HEAD"] : [route.method] where !allowed.contains(method) {
                allowed.append(method)
            }
        }
        return allowed.isEmpty ? .nothing : .otherMethods(allowed)
    }

    private static func segments(of pattern: String) -> [Segment] {
        pieces(of: pattern).map { part in
            part.hasPrefix("{") && part.hasSuffix("}")
                ? .parameter(String(part.dropFirst().dropLast())) : .literal(String(part))
        }
    }

    /// Splits a path into segments, empty ones included.
    private static func pieces(of path: String) -> [Substring] {
        path == "/" ? [] : path.dropFirst().split(separator: "/", omittingEmptySubsequences: false)
    }

    private static func match(_ segments: [Segment], _ path: String) -> Parameters? {
        guard path.first == "/" else { return nil }
        let parts = pieces(of: path)
        guard parts.count == segments.count else { return nil }
        var parameters: Parameters = [:]
        for (segment, part) in zip(segments, parts) {
            switch segment {
            case .literal(let name): guard part == name else { return nil }
            case .parameter(let name):
                guard !part.isEmpty, let value = PercentEncoding.uri.decode(part.utf8) else { return nil }
                parameters[name] = value
            }
        }
        return parameters
    }
}
