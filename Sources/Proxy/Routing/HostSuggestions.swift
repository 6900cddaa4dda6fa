import Configuration
import HTTPMessage

/// Finds an upstream similar to an unknown host: with another port, or a name that differs in a few letters. Each
/// search is bounded, because it runs on the loop.
struct HostSuggestions: Sendable {
    /// Limit of hosts that can be suggested.
    static let maxHosts = 1024
    /// Limit of names compared letter by letter in one search.
    static let maxCompared = 64
    /// Longest differing middle part of two names.
    private static let maxDifference = 16

    private struct Candidate: Sendable {
        let pattern: HostPattern
        /// Name without `*.`.
        let name: [UInt8]
        /// Rules of the callers that may use the host; `nil` if every caller may.
        var callers: [CallerRule]?
    }
    private var candidates: [Candidate] = []
    /// Lengths of the candidates' names, which quickly rule out most candidates.
    private var lengths: [Int] = []
    private static let maxDistance = 3

    init(_ upstreams: [UpstreamSettings]) {
        var indices: [HostPattern: Int] = [:]
        for upstream in upstreams {
            let rule = CallerRule(upstream.callers)
            if let index = indices[upstream.host] {
                if let rule { candidates[index].callers?.append(rule) } else { candidates[index].callers = nil }
            } else if candidates.count < Self.maxHosts {
                indices[upstream.host] = candidates.count
                lengths.append(upstream.host.host.description.utf8.count)
                candidates.append(
                    Candidate(
                        pattern: upstream.host, name: Array(upstream.host.host.description.utf8),
                        callers: rule.map { [$0] }))
            }
        }
    }

    /// - Parameters:
    ///   - asked: authority without an upstream.
    ///   - caller: caller that must be allowed to use the suggested host; `nil` for the operator, who sees all hosts.
    func nearest(to asked: Authority, caller: Caller?) -> HostPattern? {
        let whole = Array(asked.host.description.utf8)
        let parent = Array(whole.drop { $0 != UInt8(ascii: ".") }.dropFirst())
        var isName = false
        if case .name = asked.host { isName = true }
        var best: (pattern: HostPattern, distance: Int)?
        var compared = 0
        for (index, length) in lengths.enumerated() {
            guard min(abs(length - whole.count), abs(length - parent.count)) <= Self.maxDistance else { continue }
            let candidate = candidates[index]
            if candidate.pattern.wildcard, !isName { continue }
            let name = candidate.pattern.wildcard ? parent : whole
            let limit = min(min(Self.maxDistance, max(1, name.count / 5)), (best?.distance ?? .max) - 1)
            let distance: Int
            if name == candidate.name {
                distance = 0
            } else {
                guard isName, compared < Self.maxCompared, abs(name.count - candidate.name.count) <= limit,
                    case .name = candidate.pattern.host,
                    let (left, right) = Self.difference(name.span, candidate.name.span)
                else { continue }
                compared += 1
                distance = Suggestion.distance(
                    name.span.extracting(left), candidate.name.span.extracting(right))
                guard distance <= limit else { continue }
            }
            if let caller, let rules = candidate.callers, !rules.contains(where: { $0.admits(caller) }) { continue }
            if distance == 0 { return candidate.pattern }
            best = (candidate.pattern, distance)
        }
        return best?.pattern
    }

    /// Returns the differing middle parts of two names; `nil` if these are too long.
    private static func difference(_ one: Span<UInt8>, _ other: Span<UInt8>) -> (Range<Int>, Range<Int>)? {
        let shorter = min(one.count, other.count)
        var start = 0
        while start < shorter, one[start] == other[start] { start += 1 }
        var end = 0
        while end < shorter - start, one[one.count - 1 - end] == other[other.count - 1 - end] { end += 1 }
        let parts = (start..<(one.count - end), start..<(other.count - end))
        return max(parts.0.count, parts.1.count) <= maxDifference ? parts : nil
    }
}
