import Configuration
import HTTPMessage
import Reactor

/// Who gets in, and where to: decides on a request by its head, in one place and in one order. No I/O; a value for each
/// loop, which remembers the authority that was asked for last.
///
/// The proxy admits by it, and `why` says by it what the proxy would do.
struct Gate {
    let upstreams: [UpstreamRules]
    private let settings: ProxySettings
    private let routes: RouteTable
    private let tunnels: TunnelRules?
    /// `nil`: nobody has to say who they are.
    private let users: UserDirectory?
    /// Upstreams' own listeners.
    private let baseURLs: [UpstreamListener]
    private var memory = AuthorityMemory()

    init(
        _ configuration: Configuration, routes: RouteTable, users: UserDirectory? = nil,
        baseURLs: [UpstreamListener] = []
    ) {
        settings = configuration.proxy
        upstreams = configuration.upstreams.enumerated().map { UpstreamRules($1, index: $0) }
        self.routes = routes
        self.users = users
        self.baseURLs = baseURLs
        tunnels = TunnelRules(configuration.proxy)
    }

    /// What is known of a request beside its head.
    struct Situation {
        var role: ListenerRole
        /// Bytes stand behind the head that were sent without waiting for an answer.
        var hasBytesBehind = false
        var now = LoopTime(nanoseconds: 0)
        /// Whose request it is has been settled: who asks is not asked again.
        var isIdentified = false
        /// What the rules on callers are taken to say, where nobody asks.
        var assumed: RouteTable.Match?
        /// The operator asks by `why`, and may know all hosts of the configuration.
        var isOperator = false
    }

    /// Decides, in this order: user, body limit, circle, route, Max-Forwards, upgrade, credential.
    ///
    /// - Parameters:
    ///   - bytes: what `head` has ranges into.
    ///   - admitted: holds who called; is given what was found out, also where the request is refused.
    mutating func admit(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ situation: Situation, _ admitted: inout Admitted
    ) throws(Problem) -> Admission {
        // User: on every listener, since whoever gets in can use the tokens.
        if let users, !situation.isIdentified {
            guard let offered = BasicCredentials(head, bytes) else { return .refuseUser(nil) }
            switch users.judge(offered, now: situation.now) {
            case .accepted: admitted.caller.user = offered.user
            case .refused: return .refuseUser(offered)
            case .outdated: return .readUsers(offered)
            }
        }

        // Body limit, as far as a length was announced.
        if case .length(let length) = head.framing, let limit = settings.maxBodyBytes, length > UInt64(limit) {
            throw .bodyTooLarge
        }

        // Circle.
        if head.index(of: .via) != nil, Circle.isClosed(by: head, bytes) { throw .circle }

        // Route.
        if head.methodKind == .connect {
            let caller = situation.isOperator ? nil : admitted.caller
            return .tunnel(try TunnelRules.admit(head, bytes, situation.role, by: tunnels, routes, caller))
        }
        try route(head, bytes, situation, &admitted)
        guard let rules = admitted.rules else { throw .internalError }
        try Overrides.refuse(head, bytes, rules, admitted)

        // Max-Forwards: TRACE and OPTIONS count the proxies they may pass (RFC 9110, section 7.6.2).
        if head.methodKind == .trace || head.methodKind == .options, let index = head.index(of: .maxForwards) {
            let left = try MaxForwards.read(bytes[head.fields[index].value])
            guard left > 0 else { return .reply }
            admitted.maxForwards = left - 1
        }

        // Upgrade.
        if head.upgradeRequested {
            try offerUpgrade(head, bytes, hasBytesBehind: situation.hasBytesBehind, &admitted)
        }

        // Credential.
        admitted.credential = try rules.injection.judge(head, bytes, admitted.target)
        return .forward
    }

    // MARK: Route

    private mutating func route(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ situation: Situation, _ admitted: inout Admitted
    ) throws(Problem) {
        if head.methodKind == .trace, head.framing != .none, head.framing != .length(0) { throw .traceWithBody }
        let parsed: RequestTarget
        do throws(MessageError) { parsed = try RequestTarget(parsing: bytes, head: head) } catch {
            throw Problem(error)
        }
        var scheme = Scheme.http
        var authority = head.host
        switch parsed {
        case .origin(let path): admitted.target = .path(path)
        case .absolute(let named, let host, let path):
            scheme = named
            authority = host
            admitted.target = path.isEmpty && head.methodKind == .options ? .asterisk : .path(path)
        case .asterisk: admitted.target = .asterisk
        case .authority: throw .connectRefused
        }
        guard case .forward = situation.role else {
            guard case .upstream(let listener) = situation.role else { return }
            return try enter(listener, authority, head, bytes, situation, &admitted)
        }
        if authority.isEmpty { throw .hostMissing }
        let known = try memory.look(up: bytes[authority], scheme, in: routes)
        guard let rules = known.rules else {
            // A program whose base URL is a listener of ours, and that sends all it asks for through its proxy.
            if case .absolute = parsed, scheme == .http,
                let listener = baseURLs.first(where: { $0.isAt(known.authority) })
            {
                return try enter(listener, authority, head, bytes, situation, &admitted)
            }
            guard settings.unmatched == .forward else {
                let caller = situation.isOperator ? nil : admitted.caller
                throw .unknownHost(
                    known.authority, scheme, near: routes.near.nearest(to: known.authority, caller: caller))
            }
            if scheme == .https { throw .schemeNotSupported }
            admitted.rules = .unmatched
            admitted.destination = UpstreamRules.unmatched.destination(for: known.authority, scheme: .http)
            admitted.asked = AskedAddress(scheme: scheme, authority: known.authority, isBaseURL: false)
            return
        }
        let upstream = try choose(rules, head, bytes, situation, &admitted)
        guard let destination = memory.destination(at: upstream) else { throw .internalError }
        admitted.destination = destination
        admitted.asked = AskedAddress(scheme: scheme, authority: known.authority, isBaseURL: false)
        if scheme == .https, destination.scheme != .https { throw .schemeNotSupported }
        // A program whose port is redirected here may be a browser, and then any page in it would get the token. Asked
        // in absolute form, somebody has told the browser to use this proxy.
        if case .origin = parsed, upstream.settings.injects, !upstream.settings.browsers {
            try WebPage.refuse(bytes, head)
        }
    }

    /// At a base URL.
    private func enter(
        _ listener: UpstreamListener, _ range: ByteRange, _ head: RequestHead, _ bytes: Span<UInt8>,
        _ situation: Situation, _ admitted: inout Admitted
    ) throws(Problem) {
        let authority = try listener.admit(bytes, head, range)
        let upstream = try choose(listener.rules, head, bytes, situation, &admitted)
        admitted.destination = upstream.destination(for: listener.authority, scheme: .https)
        admitted.asked = AskedAddress(scheme: .http, authority: authority, isBaseURL: true)
    }

    private func choose(
        _ rules: RouteTable.Rules, _ head: RequestHead, _ bytes: Span<UInt8>, _ situation: Situation,
        _ admitted: inout Admitted
    ) throws(Problem) -> UpstreamRules {
        let match = situation.assumed ?? Self.match(rules, head, bytes, admitted.target, admitted.caller)
        switch match {
        case .upstream(let index):
            let upstream = upstreams[index]
            admitted.rules = upstream
            guard case .path(let path) = admitted.target else {
                if upstream.isLimited { throw .wholeServer }
                return upstream
            }
            if upstream.isConfined, PathRules.climbs(bytes[path]) { throw .climbingPath }
            return upstream
        case .notCovered: throw .notCovered
        case .notForCaller: throw .notForCaller
        case .ambiguousPath: throw .ambiguousPath
        }
    }

    private static func match(
        _ rules: RouteTable.Rules, _ head: RequestHead, _ bytes: Span<UInt8>, _ target: TargetForm, _ caller: Caller?
    ) -> RouteTable.Match {
        switch target {
        case .path(let path): rules.match(path: bytes[path], method: bytes[head.method], caller: caller)
        case .asterisk: rules.match(path: asterisk.span, method: bytes[head.method], caller: caller)
        }
    }

    private static let asterisk = Array("*".utf8)

    /// Where rules on callers decide what becomes of a request: the upstreams of some, the most specific first, and of
    /// everybody else, if there is one.
    mutating func choices(_ head: RequestHead, _ bytes: Span<UInt8>) -> (some: [Int], others: Int?)? {
        guard let parsed = try? RequestTarget(parsing: bytes, head: head),
            case .absolute(let scheme, let authority, let path) = parsed,
            let known = try? memory.look(up: bytes[authority], scheme, in: routes)
        else { return nil }
        let listener = scheme == .http ? baseURLs.first { $0.isAt(known.authority) } : nil
        let target = path.isEmpty && head.methodKind == .options ? TargetForm.asterisk : .path(path)
        guard let rules = known.rules ?? listener?.rules,
            case .upstream = Self.match(rules, head, bytes, target, nil)
        else { return nil }
        guard case .path = target else {
            return rules.choices(path: Self.asterisk.span, method: bytes[head.method])
        }
        return rules.choices(path: bytes[path], method: bytes[head.method])
    }

    // MARK: Upgrade

    /// Passes the offer on, where it is one that can be kept. Others are left out, as a server may that does not know
    /// them.
    private func offerUpgrade(
        _ head: RequestHead, _ bytes: Span<UInt8>, hasBytesBehind: Bool, _ admitted: inout Admitted
    ) throws(Problem) {
        let offer = UpgradeList(head.fields, in: bytes)?.withoutHTTP
        if let offer, offer.isEmpty { return }
        admitted.isLast = true
        guard let offer, case .path = admitted.target, head.framing == .none || head.framing == .length(0),
            head.methodKind != .head, head.methodKind != .trace
        else { return }
        if hasBytesBehind { throw .bytesBeforeUpgrade }
        admitted.upgrade = offer
    }
}
