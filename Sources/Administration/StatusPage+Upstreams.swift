import Reports
import WireText

// Upstreams of the page `/status`.
extension StatusPage {
    func json(_ upstream: UpstreamTraffic) -> JSON {
        let (total, failed) = Self.counts(upstream)
        let failure = upstream.lastFailure.map { last in
            JSON.object([
                .init("cause", .string(last.cause)), .init("seconds_ago", JSON(last.ago)),
                .init("urls", .array(destinations(of: upstream).map { .string($0) })),
            ])
        }
        return .object([
            .init("upstream", .string(upstream.name)), .init("client", JSON(upstream.client)),
            .init("injects", .array(injections(of: upstream).map { .string($0) })),
            .init("requests", .number(total)), .init("server_errors", .number(failed)),
            .init("answered_by_proxy", .number(Int(clamping: upstream.answeredByProxy.total))),
            .init("last_failure", failure ?? .null),
            .init("refused_credentials", .array(refusedCredentials(of: upstream).map(\.json))),
            .init("mean_duration_seconds", Self.mean(upstream).map { .decimal($0) } ?? .null),
            .init("bytes_sent", .number(Int(clamping: upstream.bytesSent))),
            .init("bytes_received", .number(Int(clamping: upstream.bytesReceived))),
        ])
    }

    /// Counts all requests, and the requests sent to the upstream whose answer had a status from 500.
    static func counts(_ upstream: UpstreamTraffic) -> (total: Int, failed: Int) {
        let total = upstream.requests.total
        let failed = upstream.answeredByUpstream.rows.filter { $0.code >= 500 }.reduce(0) { $0 + $1.count }
        return (Int(clamping: total), Int(clamping: failed))
    }

    private static func mean(_ upstream: UpstreamTraffic) -> Double? {
        let durations = upstream.durationsByUpstream
        return durations.total == 0 ? nil : durations.sum / Double(durations.total)
    }

    func text(_ upstream: UpstreamTraffic) -> String {
        let (total, failed) = Self.counts(upstream)
        let group = TrafficGroup(rawValue: upstream.name)
        if let group, group == .noUpstream { return "\(group.inWords): \(total), all refused" }
        var text =
            group.map { "\($0.inWords): " }
            ?? "\(upstream.name)  \(upstream.client.map { "client \($0)" } ?? fixedCredentials(of: upstream) ?? "without a token")  "
        text += "\(total) request\(total == 1 ? "" : "s"), \(failed) server error\(failed == 1 ? "" : "s")"
        if let ours = Self.codes(upstream.answeredByProxy.rows) {
            text += ", \(upstream.answeredByProxy.total) answered by the proxy itself (\(ours))"
        }
        if let mean = Self.mean(upstream) { text += ", \(DecimalText.thousandths(mean)) s on average" }
        if let failure = upstream.lastFailure {
            let destinations = destinations(of: upstream)
            let at = destinations.isEmpty ? "" : " at \(destinations.joined(separator: " or "))"
            text += "\n    last failure \(Self.words(failure.ago)) ago\(at): \(failure.cause)"
        }
        for refused in refusedCredentials(of: upstream) {
            text += "\n    \(refused.sentence)\n      what to do: \(Sentence.plain(refused.advice))"
        }
        return text
    }

    /// A single status code alone, several with their counts: `503`, or `2 × 502, 1 × 503`.
    private static func codes(_ requests: [(code: Int, count: UInt64)]) -> String? {
        guard requests.count > 1 else { return requests.first.map { "\($0.code)" } }
        return requests.map { "\($0.count) × \($0.code)" }.joined(separator: ", ")
    }
}

extension TrafficGroup {
    /// Name of the group, for the beginning of a line.
    var inWords: String {
        switch self {
        case .unmatched: "hosts that no upstream names, forwarded without a token"
        case .noUpstream: "requests for no upstream"
        case .tunnels: "tunnels (CONNECT), without a token"
        }
    }
}
