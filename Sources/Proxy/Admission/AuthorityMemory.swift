import HTTPMessage
import WireText

/// The authority that was asked for last, and what is known of it: programs ask for the same one again and again.
struct AuthorityMemory {
    struct Known {
        let authority: Authority
        /// `nil`: no upstream names it.
        let rules: RouteTable.Rules?
    }

    private var bytes: [UInt8] = []
    private var scheme = Scheme.http
    private var known: Known?
    /// Where one of its requests went, for an upstream without a `url`.
    private var destination: (upstream: UpstreamRules, to: Destination)?

    mutating func look(up bytes: Span<UInt8>, _ scheme: Scheme, in routes: RouteTable) throws(Problem) -> Known {
        if let known, self.scheme == scheme, bytes.elementsEqual(self.bytes) { return known }
        let authority: Authority
        do throws(MessageError) { authority = try Authority(parsing: bytes) } catch { throw Problem(error) }
        let known = Known(authority: authority, rules: routes.rules(for: authority, scheme: scheme))
        self.bytes.removeAll(keepingCapacity: true)
        self.bytes.append(copying: bytes)
        self.scheme = scheme
        self.known = known
        destination = nil
        return known
    }

    /// Where a request for the authority that was looked up last goes by way of `upstream`.
    mutating func destination(at upstream: UpstreamRules) -> Destination? {
        if let fixed = upstream.fixed { return fixed }
        if let destination, destination.upstream === upstream { return destination.to }
        // A wildcard without a url goes on by https, to 443 where the program said 80.
        guard var wanted = known?.authority else { return nil }
        if wanted.port == 80 { wanted.port = nil }
        let made = upstream.destination(for: wanted, scheme: .https)
        destination = (upstream, made)
        return made
    }
}
