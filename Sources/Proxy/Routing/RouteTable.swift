import Configuration
import HTTPMessage
import WireText

/// Finds the upstream of a request. Built once from the configuration and then only read, on every loop.
///
/// The most specific rule wins. These properties decide in turn: exact host, longest wildcard, a port, longest path,
/// methods, fields, callers. If no rule of a listed host covers a request, the proxy refuses it. It never forwards such
/// a request without a credential.
struct RouteTable: Sendable {
    enum Match: Sendable, Equatable {
        /// Index of the upstream in the configuration.
        case upstream(Int)
        /// The host is listed, but no rule covers this path, method and fields.
        case notCovered
        case notForCaller
        /// The host has path rules, and this path is ambiguous.
        case ambiguousPath
    }

    /// Condition on a field, with the name's bytes.
    struct Condition: Sendable {
        let name: [UInt8]
        /// Letters and digits of the name.
        let plain: [UInt8]
        let rule: FieldRule

        init(_ rule: FieldRule) {
            self.rule = rule
            name = Array(rule.name.utf8)
            plain = MangledName.plain(rule.name)
        }
    }

    /// The rules of one host pattern, most specific first.
    struct Candidates: Sendable {
        struct Rule: Sendable {
            let upstream: Int
            let path: [UInt8]?
            let methods: [[UInt8]]
            let fields: [Condition]
            /// Rule of `callers`; `nil` for every caller.
            let callers: CallerRule?

            @inline(__always) func covers(_ asked: Span<UInt8>, _ method: Span<UInt8>) -> Bool {
                if let path, !PathRules.matches(prefix: path, path: asked) { return false }
                return methods.isEmpty || methods.contains { method.elementsEqual($0) }
            }
        }
        fileprivate(set) var rules: [Rule] = []
        fileprivate var hasPaths = false
        /// Whether TLS inside CONNECT to the host is intercepted.
        fileprivate(set) var intercepts = false
        /// The operator's certificate for this host; `nil` if the proxy makes a certificate.
        fileprivate(set) var serverCertificate: ListenerTLS?
    }

    private struct Key: Hashable {
        let host: Authority.Host
        let port: UInt16?
        /// Whether the host is a wildcard's part behind `*.`.
        var isWildcard = false
    }
    private var hosts: [Key: Candidates] = [:]
    private let hasWildcards: Bool
    /// Suggestions for hosts that no pattern matches.
    let near: HostSuggestions
    /// Ports of all listed hosts.
    let ports: Set<UInt16>
    /// Ports of the intercepted hosts.
    let interceptedPorts: Set<UInt16>

    init(_ upstreams: [UpstreamSettings]) {
        near = HostSuggestions(upstreams)
        for (index, upstream) in upstreams.enumerated() {
            let key = Key(host: upstream.host.host, port: upstream.host.port, isWildcard: upstream.host.wildcard)
            hosts[key, default: Candidates()].add(upstream, index)
        }
        for key in hosts.keys { hosts[key]?.sort() }
        // Rules without a port also hold for 80 and 443. There they come after the rules with this port.
        for (key, portless) in hosts where key.port == nil {
            for port: UInt16 in [80, 443] {
                hosts[Key(host: key.host, port: port, isWildcard: key.isWildcard), default: Candidates()].append(
                    portless)
            }
        }
        hasWildcards = upstreams.contains { $0.host.wildcard }
        ports = Set(hosts.keys.compactMap(\.port))
        interceptedPorts = Set(hosts.filter(\.value.intercepts).keys.compactMap(\.port))
    }

    /// Returns the rules of one upstream alone, for its own listener.
    static func candidates(only index: Int, of upstream: UpstreamSettings) -> Candidates {
        var candidates = Candidates()
        candidates.add(upstream, index)
        candidates.sort()
        return candidates
    }

    /// Returns the rules for an authority; `nil` if no pattern matches. Without a port, the scheme's port counts.
    func candidates(for authority: Authority, scheme: Scheme) -> Candidates? {
        let port = authority.port(for: scheme)
        if let candidates = hosts[Key(host: authority.host, port: port)] { return candidates }
        guard hasWildcards, case .name(let name) = authority.host else { return nil }
        var rest = name[...]
        while let dot = rest.firstIndex(of: ".") {
            rest = rest[rest.index(after: dot)...]
            if let candidates = hosts[Key(host: .name(String(rest)), port: port, isWildcard: true)] {
                return candidates
            }
        }
        return nil
    }
}

extension RouteTable.Candidates {
    fileprivate mutating func add(_ upstream: UpstreamSettings, _ index: Int) {
        let methods = upstream.methods.map { Array($0.utf8) }
        let callers = CallerRule(upstream.callers)
        let paths: [[UInt8]?] = upstream.paths.isEmpty ? [nil] : upstream.paths.map { Array($0.utf8) }
        let fields = upstream.fields.map { RouteTable.Condition($0) }
        rules += paths.map {
            Rule(upstream: index, path: $0, methods: methods, fields: fields, callers: callers)
        }
        hasPaths = hasPaths || !upstream.paths.isEmpty
        intercepts = intercepts || upstream.intercepts
        serverCertificate = serverCertificate ?? upstream.serverCertificate
    }

    fileprivate mutating func sort() {
        rules.sort { left, right in
            let lengths = (left.path?.count ?? -1, right.path?.count ?? -1)
            if lengths.0 != lengths.1 { return lengths.0 > lengths.1 }
            if left.methods.isEmpty != right.methods.isEmpty { return right.methods.isEmpty }
            if left.fields.isEmpty != right.fields.isEmpty { return right.fields.isEmpty }
            if (left.callers != nil) != (right.callers != nil) { return right.callers == nil }
            return left.upstream < right.upstream
        }
    }

    fileprivate mutating func append(_ other: RouteTable.Candidates) {
        rules += other.rules
        hasPaths = hasPaths || other.hasPaths
        intercepts = intercepts || other.intercepts
        serverCertificate = serverCertificate ?? other.serverCertificate
    }

    /// Chooses the upstream by path (with or without query), method, fields and caller. A `nil` caller fits every rule.
    func match(
        path: Span<UInt8>, _ head: RequestHead, _ bytes: Span<UInt8>, caller: Caller?
    ) -> RouteTable.Match {
        let method = bytes[head.method]
        if hasPaths, PathRules.isAmbiguous(path) { return .ambiguousPath }
        var isForOthers = false
        // Rules are read in place: a copy would cost six retains.
        for index in rules.indices
        where rules[index].covers(path, method)
            && rules[index].fields.allSatisfy({ Self.meets($0, head, bytes) })
        {
            if let callers = rules[index].callers, let caller, !callers.admits(caller) {
                isForOthers = true
                continue
            }
            return .upstream(rules[index].upstream)
        }
        return isForOthers ? .notForCaller : .notCovered
    }

    /// Whether the request has the field once, under its own name, with an accepted value. A hop-by-hop field does not
    /// count: the upstream would not receive it.
    static func meets(_ condition: RouteTable.Condition, _ head: RequestHead, _ bytes: Span<UInt8>) -> Bool {
        var isFound = false
        for field in head.fields where bytes[field.name].mayName(field: condition.plain) {
            // Under another name of the same letters, some servers would take the value and others not.
            guard !isFound, !field.isHopByHop, bytes[field.name].equalsIgnoringCase(condition.name),
                condition.rule.accepts(bytes[field.value])
            else { return false }
            isFound = true
        }
        return isFound
    }

    /// Returns the upstreams that only certain callers may use, most specific first, and the upstream of all other
    /// callers; `nil` for none. Ignores `fields`.
    func choices(path: Span<UInt8>, method: Span<UInt8>) -> (some: [Int], others: Int?) {
        var some: [Int] = []
        for rule in rules where rule.covers(path, method) {
            guard rule.callers != nil else { return (some, rule.upstream) }
            if !some.contains(rule.upstream) { some.append(rule.upstream) }
        }
        return (some, nil)
    }
}
