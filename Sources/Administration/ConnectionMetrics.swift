import Reports

// Metrics of connections and certificates.
extension MetricsPage {
    func writeConnections(_ output: inout PrometheusText) {
        let uses = upstreams.compactMap { upstream in upstream.connections.map { (upstream.name, $0) } }
        func family(
            _ name: String, _ kind: PrometheusText.Kind, _ help: String, _ value: (ConnectionUse) -> UInt64
        ) {
            output.begin(name, kind, help)
            for (upstream, use) in uses { output.sample(["upstream": upstream], value(use)) }
        }
        family(
            "heimdallr_upstream_connections_open", .gauge,
            "Connections to the upstream, those that are being made and idle ones included."
        ) { UInt64($0.open) }
        family("heimdallr_upstream_connections_idle", .gauge, "Connections to the upstream that no request uses.") {
            UInt64($0.idle)
        }
        family(
            "heimdallr_upstream_connections_in_use", .gauge, "Connections to the upstream that are used, or being made."
        ) {
            UInt64($0.inUse)
        }
        family(
            "heimdallr_upstream_connections_limit", .gauge,
            "Connections to the upstream that there may be, on all event loops."
        ) {
            UInt64($0.limit)
        }
        family("heimdallr_upstream_connections_opened_total", .counter, "Connections to the upstream that were made.") {
            $0.opened
        }
        family(
            "heimdallr_upstream_connections_reused_total", .counter,
            "Requests that went out on a connection that had served another before."
        ) { $0.reused }
        family(
            "heimdallr_upstream_waiters", .gauge, "Requests that wait for a connection to the upstream to become free."
        ) {
            UInt64($0.waiting)
        }
        output.begin("heimdallr_client_connections_open", .gauge, "Connections of programs to the proxy.")
        output.sample([:], traffic.clients.open)
        output.begin(
            "heimdallr_client_connections_limit", .gauge,
            "Connections of programs that are served at once; more wait to be accepted.")
        output.sample([:], traffic.clients.limit)
    }

    func writeCertificates(_ output: inout PrometheusText) {
        output.begin(
            "heimdallr_certificate_expiry_timestamp_seconds", .gauge,
            "When a certificate ends that connections depend on, or one of its issuers, in seconds since 1970.")
        let shown = upstreams.compactMap { upstream in
            upstream.connections?.certificateEnd.map { CertificateEnd(.upstream, upstream.name, at: $0) }
        }
        for end in certificates + shown {
            output.sample(["kind": end.kind.rawValue, "name": end.name], Int(end.at))
        }
    }
}
