import HTTPMessage
import WireText

/// Cache of the last authority and its rules. Most programs repeat the same authority.
struct AuthorityMemory {
    struct Known {
        let authority: Authority
        let candidates: RouteTable.Candidates?
    }

    private var bytes: [UInt8] = []
    private var scheme = Scheme.http
    private var known: Known?
    /// Destination of the last request to an upstream without a `url`.
    private var destination: (upstream: UpstreamRule, to: Destination)?

    mutating func look(up bytes: Span<UInt8>, _ scheme: Scheme, in routes: RouteTable) throws(Problem) -> Known {
        if let known, self.scheme == scheme, bytes.elementsEqual(self.bytes) { return known }
        let authority: Authority
        do throws(MessageError) { authority = try Authority(parsing: bytes) } catch { throw Problem(error) }
        let known = Known(authority: authority, candidates: routes.candidates(for: authority, scheme: scheme))
        self.bytes.removeAll(keepingCapacity: true)
        self.bytes.append(copying: bytes)
        self.scheme = scheme
        self.known = known
        destination = nil
        return known
    }

    /// Returns the destination of a request to `upstream` for the last authority.
    mutating func destination(at upstream: UpstreamRule) -> Destination? {
        if let fixed = upstream.fixed { return fixed }
        if let destination, destination.upstream === upstream { return destination.to }
        // A wildcard without a url: the destination has https, and port 443 in place of 80.
        guard var wanted = known?.authority else { return nil }
        if wanted.port == 80 { wanted.port = nil }
        let made = upstream.destination(for: wanted, scheme: .https)
        destination = (upstream, made)
        return made
    }
}
