import Configuration
import Cryptography
import HTTPMessage
import Reactor
import WireText

/// Admits or refuses a request by its head, and finds its destination. Makes all checks in one order, without I/O.
/// Each loop has its own value.
///
/// The command `why` asks a gate, and so explains what the proxy would do.
struct Gate {
    let upstreams: [UpstreamRule]
    private let settings: ProxySettings
    private let routes: RouteTable
    private let tunnels: TunnelRules?
    private let baseURLs: [UpstreamListener]
    /// `nil`: no placeholder is configured, and nothing is looked for.
    let placeholders: PlaceholderGuard?
    private var memory = AuthorityMemory()
    private var opened = OpenedPlaceholders()

    init(
        _ configuration: Configuration, routes: RouteTable, upstreams: [UpstreamRule]? = nil,
        baseURLs: [UpstreamListener] = [], placeholders: PlaceholderGuard?
    ) {
        settings = configuration.proxy
        self.upstreams = upstreams ?? configuration.upstreams.enumerated().map { UpstreamRule($1, index: $0) }
        self.routes = routes
        self.baseURLs = baseURLs
        self.placeholders = placeholders
        tunnels = TunnelRules(configuration.proxy)
    }

    struct Situation {
        var role: ListenerRole
        /// Scheme of the listener.
        var listenerScheme = Scheme.http
        /// Whether the program sent bytes after the head without waiting for an answer.
        var hasBytesAfterHead = false
        /// Route that `why` assumes in place of the caller's.
        var assumed: RouteTable.Match?
        /// The CONNECT inside which the request came.
        var inside: Inside?
        /// The name whose address an enclosed program has dialled. The connection is for this host alone.
        var dialled: String?
        /// Whether the command `why` asks. Its answers may name all hosts of the configuration.
        var isOperator = false

        /// Scheme of requests in origin form.
        var scheme: Scheme { inside?.scheme ?? listenerScheme }
    }

    /// Decides in this order: body limit, forwarding loop, placeholder in the address, route, overrides, discovery,
    /// Max-Forwards, upgrade, credential, placeholder elsewhere. For CONNECT, the route is the last check.
    /// - Parameter admitted: has the caller at first. Receives the results, also those of a refused request.
    mutating func admit(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ situation: Situation, _ admitted: inout Admitted
    ) throws(Problem) -> Admission {
        // Body limit, if the length is announced.
        if case .length(let length) = head.framing, let limit = settings.maxBodyBytes, length > UInt64(limit) {
            throw Problem(.bodyTooLarge)
        }

        // Forwarding loop.
        if ForwardingLoop.isClosed(by: head, bytes) { throw Problem(.circle) }

        // Placeholder in the address.
        let hasPlaceholder = try placeholders?.look(at: head, bytes) ?? false

        // Route.
        if head.methodKind == .connect {
            let caller = situation.isOperator ? nil : admitted.caller
            return try TunnelRules.admit(head, bytes, situation, by: tunnels, routes, caller)
        }
        try route(head, bytes, situation, &admitted)
        guard let rule = admitted.rule else { throw Problem(.internalError) }
        // A page could post a form to a token endpoint.
        if rule.issues, !rule.settings.browsers { try WebPage.refuse(bytes, head) }
        try Overrides.refuse(head, bytes, rule, admitted)
        if rule.settings.hidesDiscovery, case .path(let path) = admitted.target, Discovery.isMetadata(bytes[path]) {
            throw Problem(.signsInItself)
        }

        // Max-Forwards limits the proxies that TRACE and OPTIONS may pass (RFC 9110, section 7.6.2).
        if head.methodKind == .trace || head.methodKind == .options, let index = head.index(of: .maxForwards) {
            let left = try MaxForwards.read(bytes[head.fields[index].value])
            guard left > 0 else { return .reply }
            admitted.maxForwards = left - 1
        }

        // Upgrade.
        if head.upgradeRequested {
            try offerUpgrade(head, bytes, hasBytesAfterHead: situation.hasBytesAfterHead, &admitted)
        }

        // Credential.
        admitted.credential = try rule.injection.judge(head, bytes, admitted.target)
        if rule.takesIssued { try open(head, bytes, rule, admitted) }
        // Where the proxy answers itself, nothing leaves.
        if !rule.issues {
            try placeholders?.refuse(head, bytes, rule.injection, admitted, isThere: hasPlaceholder)
        }
        return .forward
    }

    /// Opens the placeholders that the credential replaces.
    private mutating func open(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ rule: UpstreamRule, _ admitted: Admitted
    ) throws(Problem) {
        guard !admitted.entries.isEmpty, let seal = placeholders?.seal, let client = rule.settings.client else {
            return
        }
        let texts = rule.injection.issued(head, bytes, admitted.target)
        // A credential that is wanted by something else than a placeholder would go out unchecked.
        guard !texts.isEmpty else { throw Problem(.placeholderForeign) }
        for text in texts {
            do throws(PlaceholderSeal.Refusal) {
                try opened.open(
                    text, by: seal, client: client, caller: admitted.caller.identity, now: WallClock.now())
            } catch {
                switch error {
                case .ended: throw Problem(.placeholderEnded)
                case .foreign: throw Problem(.placeholderForeign)
                case .elsewhere: throw Problem(.placeholderElsewhere)
                }
            }
        }
    }

    // MARK: Route

    private mutating func route(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ situation: Situation, _ admitted: inout Admitted
    ) throws(Problem) {
        if head.methodKind == .trace, head.framing.hasContent { throw Problem(.traceWithBody) }
        let parsed: RequestTarget
        do throws(MessageError) { parsed = try RequestTarget(parsing: bytes, head: head) } catch {
            throw Problem(error)
        }
        var scheme = situation.scheme
        var authority = head.host
        switch parsed {
        case .origin(let path): admitted.target = .path(path)
        case .absolute(let named, let host, let path):
            scheme = named
            authority = host
            admitted.target = path.isEmpty && head.methodKind == .options ? .asterisk : .path(path)
        case .asterisk: admitted.target = .asterisk
        case .authority: throw Problem(.connectRefused)
        }
        switch situation.role {
        case .forward: break
        case .upstream(let listener): return try enter(listener, authority, head, bytes, situation, &admitted)
        }
        if authority.isEmpty { throw Problem(.hostMissing) }
        let known = try memory.look(up: bytes[authority], scheme, in: routes)
        if let inside = situation.inside, known.candidates == nil || !inside.admits(known.authority, scheme) {
            throw Self.otherAuthority(head, isListed: known.candidates != nil)
        }
        if let dialled = situation.dialled, known.authority.host != .name(dialled) { throw Problem(.otherThanDialled) }
        guard let candidates = known.candidates else {
            // A program may send requests for an upstream's own listener through the proxy.
            if case .absolute = parsed, scheme == .http,
                let listener = baseURLs.first(where: { $0.isAt(known.authority, .http) })
            {
                return try enter(listener, authority, head, bytes, situation, &admitted)
            }
            return try pass(unmatched: known.authority, scheme, situation, &admitted)
        }
        let upstream = try choose(candidates, head, bytes, situation, &admitted)
        guard let destination = memory.destination(at: upstream) else { throw Problem(.internalError) }
        admitted.destination = destination
        admitted.named = ProgramAddress(scheme: scheme, authority: known.authority, isBaseURL: false)
        if scheme == .https, destination.scheme != .https, situation.scheme == .http {
            throw Problem(.schemeNotSupported)
        }
        // With redirected ports, the program may be a browser, and any web page could use the token. Absolute form and
        // CONNECT are exempt: a browser that sends them was configured to use this proxy.
        if case .origin = parsed, situation.inside?.isRedirected ?? true, upstream.settings.injects,
            !upstream.settings.browsers
        {
            try WebPage.refuse(bytes, head)
        }
    }

    private func pass(
        unmatched authority: Authority, _ scheme: Scheme, _ situation: Situation, _ admitted: inout Admitted
    ) throws(Problem) {
        guard settings.unmatched == .forward else {
            let caller = situation.isOperator ? nil : admitted.caller
            throw .unknownHost(authority, scheme, near: routes.near.nearest(to: authority, caller: caller))
        }
        if scheme == .https { throw Problem(.schemeNotSupported) }
        admitted.rule = .unmatched
        admitted.destination = UpstreamRule.unmatched.destination(for: authority, scheme: .http)
        admitted.named = ProgramAddress(scheme: scheme, authority: authority, isBaseURL: false)
    }

    private static func otherAuthority(_ head: RequestHead, isListed: Bool) -> Problem {
        var problem = Problem(.otherAuthority)
        // A program may reuse a connection for another host. 421 makes it open a new one (RFC 9110, section 15.5.20).
        if isListed, head.version == .http2 { problem.status = 421 }
        return problem
    }

    private func enter(
        _ listener: UpstreamListener, _ range: ByteRange, _ head: RequestHead, _ bytes: Span<UInt8>,
        _ situation: Situation, _ admitted: inout Admitted
    ) throws(Problem) {
        let authority = try listener.admit(bytes, head, range)
        let upstream = try choose(listener.candidates, head, bytes, situation, &admitted)
        admitted.destination = upstream.destination(for: listener.authority, scheme: .https)
        admitted.named = ProgramAddress(scheme: listener.scheme, authority: authority, isBaseURL: true)
    }

    private func choose(
        _ candidates: RouteTable.Candidates, _ head: RequestHead, _ bytes: Span<UInt8>, _ situation: Situation,
        _ admitted: inout Admitted
    ) throws(Problem) -> UpstreamRule {
        let match = situation.assumed ?? Self.match(candidates, head, bytes, admitted.target, admitted.caller)
        switch match {
        case .upstream(let index):
            let upstream = upstreams[index]
            admitted.rule = upstream
            guard case .path(let path) = admitted.target else {
                if upstream.isLimited { throw Problem(.wholeServer) }
                return upstream
            }
            if upstream.isConfined, PathRules.climbs(bytes[path]) { throw Problem(.climbingPath) }
            return upstream
        case .notCovered:
            throw notCovered(candidates, head, bytes, admitted.target, situation.isOperator ? nil : admitted.caller)
        case .notForCaller: throw Problem(.notForCaller)
        case .ambiguousPath: throw Problem(.ambiguousPath)
        }
    }

    /// Returns the refusal that names the nearest rule of the host.
    private func notCovered(
        _ candidates: RouteTable.Candidates, _ head: RequestHead, _ bytes: Span<UInt8>, _ target: TargetForm,
        _ caller: Caller?
    ) -> Problem {
        var path = Self.asterisk.span
        if case .path(let range) = target { path = bytes[range] }
        guard let miss = candidates.miss(path: path, head, bytes, caller: caller) else { return Problem(.notCovered) }
        return Problem(
            miss, upstreams[miss.upstream].settings, method: bytes[head.method].text,
            path: path.extracting(first: path.position(of: UInt8(ascii: "?"))).text)
    }

    private static func match(
        _ candidates: RouteTable.Candidates, _ head: RequestHead, _ bytes: Span<UInt8>, _ target: TargetForm,
        _ caller: Caller?
    ) -> RouteTable.Match {
        switch target {
        case .path(let path): candidates.match(path: bytes[path], head, bytes, caller: caller)
        case .asterisk: candidates.match(path: asterisk.span, head, bytes, caller: caller)
        }
    }

    private static let asterisk = Array("*".utf8)

    /// Returns the upstreams that only certain callers may use, the most specific rule first, and the upstream of all
    /// other callers; `nil` if no upstream covers the request, or its target is not absolute.
    mutating func choices(_ head: RequestHead, _ bytes: Span<UInt8>) -> (some: [Int], others: Int?)? {
        guard let parsed = try? RequestTarget(parsing: bytes, head: head),
            case .absolute(let scheme, let authority, let path) = parsed,
            let known = try? memory.look(up: bytes[authority], scheme, in: routes)
        else { return nil }
        let listener = baseURLs.first { $0.isAt(known.authority, scheme) }
        let target = path.isEmpty && head.methodKind == .options ? TargetForm.asterisk : .path(path)
        guard let candidates = known.candidates ?? listener?.candidates,
            case .upstream = Self.match(candidates, head, bytes, target, nil)
        else { return nil }
        guard case .path = target else {
            return candidates.choices(path: Self.asterisk.span, method: bytes[head.method])
        }
        return candidates.choices(path: bytes[path], method: bytes[head.method])
    }

    // MARK: Upgrade

    /// Passes on the offered protocols if the proxy can switch to them. Other offers are ignored, as HTTP permits.
    private func offerUpgrade(
        _ head: RequestHead, _ bytes: Span<UInt8>, hasBytesAfterHead: Bool, _ admitted: inout Admitted
    ) throws(Problem) {
        let offer = UpgradeList(head.fields, in: bytes)?.withoutHTTP
        if let offer, offer.isEmpty { return }
        let wasLast = admitted.isLast
        admitted.isLast = true
        guard let offer, case .path = admitted.target, head.methodKind != .head, head.methodKind != .trace else {
            return
        }
        if hasBytesAfterHead, !head.framing.hasContent { throw Problem(.bytesBeforeUpgrade) }
        admitted.upgrade = offer
        admitted.staysIfIgnored = !wasLast
    }
}
