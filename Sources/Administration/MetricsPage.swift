import Heimdallr
import Reports

/// The page `/metrics`. Every label's value comes from the configuration or from a fixed list.
struct MetricsPage {
    let traffic: TrafficReport
    let clients: [HeimdallrStatus]
    let tokens: TokenMetrics
    /// In seconds since 1970.
    let now: Int64
    var reloads = ReloadCounts()
    var version = ""
    var process: ProcessUsage?
    /// Without those of upstreams.
    var certificates: [CertificateEnd] = []
    var audit: AuditCounts?
    /// `nil` without tracing.
    var spans: SpanReport?

    var text: String {
        var output = PrometheusText()
        writeProcess(&output)
        writeLoops(&output)
        writeTraffic(&output)
        writeConnections(&output)
        writeTokens(&output)
        writeCertificates(&output)
        writeReloads(&output)
        writeAudit(&output)
        writeSpans(&output)
        return output.text
    }

    /// One entry for each label value: upstreams of one host may have different clients.
    var upstreams: [UpstreamTraffic] {
        var merged: [UpstreamTraffic] = []
        for upstream in traffic.upstreams {
            if let index = merged.firstIndex(where: { $0.name == upstream.name }) {
                merged[index].add(upstream)
            } else {
                merged.append(upstream)
            }
        }
        return merged
    }

    private func writeTraffic(_ output: inout PrometheusText) {
        let upstreams = upstreams
        output.begin("heimdallr_requests_total", .counter, "Requests that were answered, by status code.")
        for upstream in upstreams {
            for (code, count) in upstream.requests.rows {
                output.sample(["upstream": upstream.name, "code": String(code)], count)
            }
        }
        output.begin(
            "heimdallr_grpc_requests_total", .counter, "Calls of gRPC that were answered, by status of gRPC.")
        for upstream in upstreams {
            for (status, count) in upstream.grpcStatuses.sorted(by: { $0.key < $1.key }) {
                output.sample(["upstream": upstream.name, "status": String(status)], count)
            }
        }
        output.begin(
            "heimdallr_request_duration_seconds", .histogram,
            "From a request's head to the end of its answer.")
        for upstream in upstreams {
            output.histogram(label: "upstream", upstream.name, upstream.durations)
        }
        output.begin("heimdallr_requests_in_flight", .gauge, "Requests that are being answered.")
        output.sample([:], traffic.inFlight)
        output.begin(
            "heimdallr_upstream_bytes_total", .counter,
            "Bytes of request bodies sent, and of answers received and passed on.")
        for upstream in upstreams {
            output.sample(["upstream": upstream.name, "direction": "sent"], upstream.bytesSent)
            output.sample(["upstream": upstream.name, "direction": "received"], upstream.bytesReceived)
        }
        output.begin(
            "heimdallr_injections_total", .counter, "Requests for upstreams with a client, by what became of the token."
        )
        for client in clients {
            let upstreams = traffic.upstreams.filter { $0.client == client.client }
            guard !upstreams.isEmpty else { continue }
            for result in InjectionResult.allCases {
                let count = upstreams.reduce(UInt64(0)) { $0 + ($1.injections[result] ?? 0) }
                output.sample(["client": client.client, "result": result.name], count)
            }
        }
    }

    private func writeSpans(_ output: inout PrometheusText) {
        guard let spans else { return }
        output.begin("heimdallr_spans_exported_total", .counter, "Spans that the collector has taken.")
        output.sample([:], spans.exported)
        output.begin("heimdallr_spans_dropped_total", .counter, "Spans that were lost, by why.")
        for loss in SpanReport.Loss.allCases {
            output.sample(["reason": loss.rawValue], spans.dropped[loss] ?? 0)
        }
    }

    private func writeTokens(_ output: inout PrometheusText) {
        let counted = clients.compactMap { status in tokens.snapshot(of: status.client).map { (status, $0) } }
        output.begin("heimdallr_token_requests_total", .counter, "Requests to the token endpoint, by how they ended.")
        for (status, client) in counted {
            for (grantType, results) in client.requests {
                for result in TokenRequestReport.Result.allCases {
                    output.sample(
                        ["client": status.client, "grant_type": grantType, "result": result.rawValue],
                        results[result] ?? 0)
                }
            }
        }
        output.begin(
            "heimdallr_token_request_duration_seconds", .histogram, "How long the token endpoint took to answer.")
        for (status, client) in counted { output.histogram(label: "client", status.client, client.durations) }
        output.begin(
            "heimdallr_token_expiry_timestamp_seconds", .gauge,
            "When the current token expires, in seconds since 1970; absent while there is none.")
        for status in clients {
            guard let left = status.expiresIn else { continue }
            output.sample(["client": status.client], Int((Double(now) + left.inSeconds).rounded()))
        }
        output.begin("heimdallr_token_events_total", .counter, "What happened to tokens.")
        for (status, client) in counted {
            for name in TokenMetrics.eventNames {
                output.sample(["client": status.client, "event": name], client.events[name] ?? 0)
            }
        }
        output.begin(
            "heimdallr_client_state", .gauge, "1 for the state that the client is in, 0 for all others.")
        for status in clients {
            for state in HeimdallrStatus.State.allCases {
                output.sample(["client": status.client, "state": state.rawValue], status.state == state ? 1 : 0)
            }
        }
        output.begin(
            "heimdallr_store_good", .gauge,
            "1 while the client's tokens can be kept in the store, 0 while they are in memory only.")
        for status in clients { output.sample(["client": status.client], status.storeFault == nil ? 1 : 0) }
        output.begin("heimdallr_token_waiters", .gauge, "Requests that wait for a token.")
        for status in clients { output.sample(["client": status.client], status.waiters) }
        guard clients.contains(where: { $0.callers != nil }) else { return }
        output.begin(
            "heimdallr_callers", .gauge, "Callers whose own tokens are exchanged, as far as they are remembered.")
        for status in clients {
            if let callers = status.callers { output.sample(["client": status.client], callers) }
        }
    }
}
