import Heimdallr
import Reports

/// The page `/metrics`. All label values come from the configuration or from fixed lists. An upstream or client has
/// series of counters from its first use on. Then it has all of them, since Prometheus sees no rise from nothing to 1.
struct MetricsPage {
    let traffic: TrafficReport
    let clients: [HeimdallrStatus]
    let tokens: TokenMetrics
    /// In seconds since 1970.
    let now: Int64
    var reloads = ReloadCounts()
    var version = ""
    var process: ProcessUsage?
    /// Ends of all certificates except those of upstreams.
    var certificates: [CertificateEnd] = []
    var audit: LineCounts?
    var log = LineCounts()
    /// `nil` without tracing.
    var spans: SpanReport?

    var text: String {
        var output = PrometheusText()
        writeProcess(&output)
        let upstreams = Self.merged(traffic.upstreams).filter(\.isUsed)
        writeTraffic(upstreams, &output)
        writeRefusals(upstreams, &output)
        writeConnections(upstreams, &output)
        writeTokens(&output)
        writeCertificates(upstreams, &output)
        writeReloads(&output)
        writeRecords(&output)
        return output.text
    }

    /// Traffic merged by name, because upstreams of the same host may have different clients.
    private static func merged(_ traffic: [UpstreamTraffic]) -> [UpstreamTraffic] {
        var merged: [UpstreamTraffic] = []
        var places: [String: Int] = [:]
        for upstream in traffic {
            if let place = places[upstream.name] {
                merged[place].add(upstream)
            } else {
                places[upstream.name] = merged.count
                merged.append(upstream)
            }
        }
        return merged
    }

    private func writeTraffic(_ upstreams: [UpstreamTraffic], _ output: inout PrometheusText) {
        output.begin(
            "heimdallr_loop_lag_seconds", .histogram,
            "Delay of an event loop behind its timers, measured ten times a second while it is busy.")
        for loop in traffic.loops { output.histogram(label: "loop", loop.name, loop.lag) }
        output.family(
            "heimdallr_requests_total", .counter, "Requests that were answered, by status code.",
            upstreams.flatMap { upstream in
                upstream.requests.rows.map { .init(["upstream": upstream.name, "code": String($0.code)], $0.count) }
            })
        output.family(
            "heimdallr_grpc_calls_total", .counter, "gRPC calls that were answered, by their status.",
            upstreams.flatMap { upstream in
                upstream.calls.rows.map { status, count in
                    let label = status == UpstreamTraffic.otherCall ? "other" : String(status)
                    return .init(["upstream": upstream.name, "grpc_status": label], count)
                }
            })
        output.begin(
            "heimdallr_request_duration_seconds", .histogram, "From a request's head to the end of its answer.")
        for upstream in upstreams { output.histogram(label: "upstream", upstream.name, upstream.durations) }
        output.family("heimdallr_requests_in_flight", .gauge, "Requests that are being answered.", traffic.inFlight)
        output.family(
            "heimdallr_upstream_bytes_total", .counter,
            "Bytes of request bodies sent, and of answers received and passed on.",
            upstreams.flatMap {
                [
                    .init(["upstream": $0.name, "direction": "sent"], $0.bytesSent),
                    .init(["upstream": $0.name, "direction": "received"], $0.bytesReceived),
                ]
            })
        var injected: [String: [InjectionResult: UInt64]] = [:]
        for upstream in traffic.upstreams where !upstream.injections.isEmpty {
            if let client = upstream.client {
                injected[client, default: [:]].merge(upstream.injections, uniquingKeysWith: &+)
            }
        }
        let injections = clients.map(\.client).flatMap { client -> [PrometheusText.Sample] in
            guard let counts = injected[client] else { return [] }
            return InjectionResult.allCases.map { .init(["client": client, "result": $0.name], counts[$0] ?? 0) }
        }
        output.family(
            "heimdallr_injections_total", .counter,
            "Requests for upstreams with a client, by the outcome of the token injection.", injections)
    }

    private func writeRefusals(_ upstreams: [UpstreamTraffic], _ output: inout PrometheusText) {
        output.family(
            "heimdallr_refusals_total", .counter, "Answers of the proxy itself, by their reason.",
            traffic.refusals.sorted { $0.key < $1.key }.map { .init(["reason": $0.key], $0.value) })
        let judged = upstreams.filter { !$0.judgements.isEmpty || $0.refused.total > 0 }
        output.family(
            "heimdallr_credential_refusals_total", .counter,
            "Answers of upstreams that refused the proxy's credential, by 401 or 403.",
            judged.flatMap { upstream in
                [401, 403].map { .init(["upstream": upstream.name, "code": String($0)], upstream.refused[$0]) }
            })
        // A rule's place is the same in all traffic of its host, so the merged judgements are those of each rule.
        output.family(
            "heimdallr_credential_good", .gauge,
            "0 while the upstream keeps refusing the proxy's credential, else 1.",
            judged.map { .init(["upstream": $0.name], $0.lastingRefusals.isEmpty ? 1 : 0) })
    }

    private func writeConnections(_ upstreams: [UpstreamTraffic], _ output: inout PrometheusText) {
        let uses = upstreams.compactMap { upstream in upstream.connections.map { (name: upstream.name, use: $0) } }
        func add<Count: Numeric>(
            _ name: String, _ kind: PrometheusText.Kind, _ help: String, _ count: (ConnectionUse) -> Count
        ) {
            output.family(name, kind, help, uses.map { .init(["upstream": $0.name], count($0.use)) })
        }
        add(
            "heimdallr_upstream_connections_open", .gauge,
            "Connections to the upstream, including idle connections and those being made.", \.open)
        add(
            "heimdallr_upstream_connections_idle", .gauge, "Connections to the upstream that no request uses.", \.idle)
        add(
            "heimdallr_upstream_connections_in_use", .gauge,
            "Connections to the upstream that a request uses, or that are being made.", \.inUse)
        add(
            "heimdallr_upstream_connections_limit", .gauge,
            "Limit of connections to the upstream, on all event loops.", \.limit)
        add(
            "heimdallr_upstream_connections_opened_total", .counter, "Connections to the upstream that were made.",
            \.opened)
        add(
            "heimdallr_upstream_connections_reused_total", .counter,
            "Requests on a connection that had served another request before.", \.reused)
        add(
            "heimdallr_upstream_waiters", .gauge, "Requests that wait for a connection to the upstream to become free.",
            \.waiting)
        output.family(
            "heimdallr_client_connections_open", .gauge, "Connections of programs to the proxy.", traffic.programs.open)
        output.family(
            "heimdallr_client_connections_limit", .gauge,
            "Limit of connections of programs; further connections wait to be accepted.", traffic.programs.limit)
    }

    private func writeCertificates(_ upstreams: [UpstreamTraffic], _ output: inout PrometheusText) {
        let shown = upstreams.compactMap { upstream in
            upstream.connections?.certificateEnd.map { CertificateEnd(.upstream, upstream.name, at: $0) }
        }
        output.family(
            "heimdallr_certificate_expiry_timestamp_seconds", .gauge,
            "Earliest expiry of a certificate that connections use and of its issuers, in seconds since 1970.",
            (certificates + shown).map { .init(["kind": $0.kind.rawValue, "name": $0.name], $0.at) })
    }

    private static func samples(_ lines: LineCounts) -> [PrometheusText.Sample] {
        [.init(["result": "written"], lines.written), .init(["result": "dropped"], lines.dropped)]
    }

    private func writeRecords(_ output: inout PrometheusText) {
        if let audit {
            output.family(
                "heimdallr_audit_lines_total", .counter,
                "Lines of the audit stream, written, or dropped because they could not be written.",
                Self.samples(audit))
        }
        output.family(
            "heimdallr_log_lines_total", .counter,
            "Lines of the log, written, or dropped because they could not be written.", Self.samples(log))
        guard let spans else { return }
        output.family(
            "heimdallr_spans_exported_total", .counter, "Spans that the collector has accepted.", spans.exported)
        output.family(
            "heimdallr_spans_dropped_total", .counter, "Spans that were lost, by reason.",
            SpanReport.Loss.allCases.map { .init(["reason": $0.rawValue], spans.dropped[$0] ?? 0) })
    }

    private func writeTokens(_ output: inout PrometheusText) {
        let counted = clients.compactMap { status in
            tokens.snapshot(of: status.client, refreshes: status.hasRefreshToken).map { (status.client, $0) }
        }.filter { $0.1.isUsed }
        let requests = counted.flatMap { name, client in
            client.requests.flatMap { grantType, results in
                TokenRequestReport.Result.allCases.map { result -> PrometheusText.Sample in
                    .init(
                        ["client": name, "grant_type": grantType, "result": result.rawValue], results[result] ?? 0)
                }
            }
        }
        output.family(
            "heimdallr_token_requests_total", .counter, "Requests to the token endpoint, by result.", requests)
        output.begin(
            "heimdallr_token_request_duration_seconds", .histogram, "How long the token endpoint took to answer.")
        for (name, client) in counted { output.histogram(label: "client", name, client.durations) }
        output.family(
            "heimdallr_token_expiry_timestamp_seconds", .gauge,
            "When the current token expires, in seconds since 1970; absent while there is none.",
            clients.compactMap { status in
                status.expiresIn.map {
                    .init(["client": status.client], Int((Double(now) + $0.inSeconds).rounded()))
                }
            })
        output.family(
            "heimdallr_token_events_total", .counter, "Events of tokens, by kind.",
            counted.flatMap { name, client in
                TokenMetrics.eventNames.map { .init(["client": name, "event": $0], client.events[$0] ?? 0) }
            })
        output.family(
            "heimdallr_client_state", .gauge, "1 for the state that the client is in, 0 for all others.",
            clients.flatMap { status in
                HeimdallrStatus.State.allCases.map {
                    .init(["client": status.client, "state": $0.rawValue], status.state == $0 ? 1 : 0)
                }
            })
        output.family(
            "heimdallr_store_good", .gauge,
            "1 while the client's tokens can be kept in the store, 0 while they are in memory only.",
            clients.map { .init(["client": $0.client], $0.storeFault == nil ? 1 : 0) })
        output.family(
            "heimdallr_token_waiters", .gauge, "Requests that wait for a token.",
            clients.map { .init(["client": $0.client], $0.waiters) })
        let callers = clients.compactMap { status in
            status.callers.map { PrometheusText.Sample(["client": status.client], $0) }
        }
        guard !callers.isEmpty else { return }
        output.family(
            "heimdallr_callers", .gauge, "Remembered callers whose own tokens are exchanged.",
            callers)
    }
}

extension UpstreamTraffic {
    /// Whether anything was counted.
    fileprivate var isUsed: Bool {
        let use = connections ?? ConnectionUse()
        return requests.total > 0 || bytesSent > 0 || bytesReceived > 0 || use.opened > 0 || use.open > 0
            || use.waiting > 0
    }
}

extension TokenMetrics.Client {
    /// Whether anything was counted.
    fileprivate var isUsed: Bool { !events.isEmpty || requests.contains { !$0.results.isEmpty } }
}
