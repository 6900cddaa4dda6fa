import HTTPMessage
import WireText

/// Settings of tracing: the collector of spans, and the share of sampled requests.
public struct TracingSettings: Sendable, Equatable {
    /// A header field of all requests to the collector.
    public struct Header: Sendable, Equatable {
        public var name: String
        public var value: SecretSource
    }

    /// Full URL of the collector.
    public var endpoint: String
    /// Sampled share of the traces that begin at the proxy: from 0 for none to 1 for all.
    public var sample = 0.01
    public var headers: [Header] = []
    /// Name of this service in spans.
    public var serviceName = "heimdallr-proxy"
    public var tls = TLSSettings()
    /// Whether `headers` may be sent over http://.
    public var allowPlaintext = false
}

extension Section {
    func tracingSettings() -> TracingSettings? {
        defer { finish() }
        let endpoint = value("otlp", Grammar.collector)
        let isPlain = endpoint.flatMap { WebURL.scheme(of: $0) } == .http
        var settings = TracingSettings(endpoint: endpoint ?? "")
        read("sample", into: &settings.sample, Grammar.share)
        tell("sample", usually: "0.01")
        read("service_name", into: &settings.serviceName, Grammar.printable)
        settings.headers = collectorHeaders()
        if let tls = section("tls") {
            settings.tls = tls.tlsSettings(serverName: false)
            if isPlain { warn("tls", "this has no effect on an http:// URL") }
        }
        read("allow_plaintext", into: &settings.allowPlaintext, Grammar.boolean)
        need("otlp", saying: "\(path): write `otlp`, the URL of a collector such as http://127.0.0.1:4318")
        if isPlain, !settings.headers.isEmpty, !settings.allowPlaintext {
            refusePlaintext("otlp", "an http:// URL would show `headers` to the network")
        }
        return endpoint == nil ? nil : settings
    }

    private static let collectorFields = Grammar.framingFields.union([
        "content-encoding", "content-type", "user-agent",
    ])

    private func collectorHeaders() -> [TracingSettings.Header] {
        var known: Set<String> = []
        return mapping("headers", to: "secrets", Self.secretShape) { name throws(BadValue) in
            let name = try Grammar.headerName(
                name, not: Self.collectorFields, "is set by the proxy itself: leave it out")
            guard known.insert(name.lowercased()).inserted else { throw BadValue("this name is repeated") }
            return name
        } value: { entry, inner in
            inner.secret(entry.key, rule: InjectedValue.fieldValue)
        }.map { TracingSettings.Header(name: $0.name, value: $0.value) }
    }
}

extension Grammar {
    /// Path for spans in OTLP/HTTP.
    private static let tracesPath = "/v1/traces"

    /// The collector's URL. A base URL gets `tracesPath` appended.
    static func collector(_ text: String) throws(BadValue) -> String {
        let instead = "; credentials for the collector go into `headers`"
        let parts = try WebURL(
            value: text, example: "http://127.0.0.1:4318",
            wanted: "an http:// or https:// URL: spans go by OTLP/HTTP, not by gRPC", user: instead, query: instead)
        try checkEscapes(parts.path)
        var path = parts.path
        while path.hasSuffix("/") { path.removeLast() }
        let whole = path.hasSuffix(tracesPath) ? String(path) : path + tracesPath
        return "\(parts.scheme.rawValue)://\(parts.authority)\(whole)"
    }

    /// A share between 0 and 1.
    static func share(_ text: String) throws(BadValue) -> Double {
        let isPlain = text.utf8.count <= 24 && text.utf8.allSatisfy { ASCII.isDigit($0) || $0 == 0x2E }
        guard isPlain, let share = Double(text), (0...1).contains(share) else {
            throw BadValue("write a number from 0 to 1, such as 0.01 for one in a hundred", matching: "^[0-9.]+$")
        }
        return share
    }
}
