@testable import Configuration
import TestSupport
import Testing

@Suite("tracing")
struct TracingTests {
    private func parse(
        _ yaml: String, environment: [String: String] = [:]
    ) throws(ConfigurationError) -> (configuration: Configuration, warnings: [ConfigurationError.Problem]) {
        try Configuration.parse(yaml: yaml, file: "c.yaml", environment: environment)
    }

    @Test func `a collector's URL alone is enough for tracing`() throws {
        let tracing = try #require(try parse("tracing: {otlp: \"http://127.0.0.1:4318\"}").configuration.tracing)
        #expect(tracing.endpoint == "http://127.0.0.1:4318/v1/traces")
        #expect(tracing.sample == 0.01)
        #expect(tracing.serviceName == "heimdallr-proxy")
        #expect(tracing.headers.isEmpty)
        #expect(try parse("upstreams: []").configuration.tracing == nil)
    }

    @Test func `all keys of tracing are taken as they are written`() throws {
        let folder = try TemporaryDirectory()
        let anchors = try folder.write("-----BEGIN CERTIFICATE-----\n", to: "ca.pem")
        let (configuration, _) = try parse(
            """
            tracing:
              otlp: https://collector.example.com/otlp/
              sample: 0.25
              service_name: billing sidecar
              headers:
                Authorization: {env: COLLECTOR_KEY}
                X-Scope-OrgID: "${TENANT}"
              tls: {ca_file: \(anchors)}
            """, environment: ["COLLECTOR_KEY": "Bearer abc", "TENANT": "42"])
        let tracing = try #require(configuration.tracing)
        #expect(tracing.endpoint == "https://collector.example.com/otlp/v1/traces")
        #expect(tracing.sample == 0.25)
        #expect(tracing.serviceName == "billing sidecar")
        #expect(
            tracing.headers == [
                .init(name: "Authorization", value: .environment(name: "COLLECTOR_KEY")),
                .init(name: "X-Scope-OrgID", value: .environment(name: "TENANT")),
            ])
        #expect(tracing.tls.caFile == anchors)
        #expect(configuration.variables.isSuperset(of: ["COLLECTOR_KEY", "TENANT"]))
    }

    @Test(
        "the path for spans is put behind a base URL, and only there",
        arguments: [
            ("http://[::1]:4318/", "http://[::1]:4318/v1/traces"),
            ("https://c.example.com/v1/traces", "https://c.example.com/v1/traces"),
            ("https://c.example.com/v1/traces/", "https://c.example.com/v1/traces"),
            ("HTTPS://c.example.com/api/v2/otlp", "https://c.example.com/api/v2/otlp/v1/traces"),
        ])
    func endpoint(written: String, used: String) throws {
        #expect(try parse("tracing: {otlp: \"\(written)\"}").configuration.tracing?.endpoint == used)
    }

    @Test(
        "tracing that can't work is an error that says what to write",
        arguments: [
            ("{}", "write `otlp`"), ("{sample: 1}", "write `otlp`"),
            ("{otlp: \"127.0.0.1:4318\"}", "http://127.0.0.1:4318"),
            ("{otlp: \"grpc://127.0.0.1:4317\"}", "not by gRPC"),
            ("{otlp: \"http://me@127.0.0.1:4318\"}", "`headers`"),
            ("{otlp: \"https://c.example.com/?key=0123\"}", "`headers`"),
            ("{otlp: \"https://c.example.com/#x\"}", "without a fragment"),
            ("{otlp: \"http://c.example.com\", sample: 1%}", "from 0 to 1"),
            ("{otlp: \"http://c.example.com\", sample: 1.01}", "from 0 to 1"),
            ("{otlp: \"http://c.example.com\", sample: -1}", "from 0 to 1"),
            ("{otlp: \"http://c.example.com\", sample: 0x1}", "from 0 to 1"),
            ("{otlp: \"http://c.example.com\", sample: .}", "from 0 to 1"),
            ("{otlp: \"http://c.example.com\", sample: nan}", "from 0 to 1"),
            ("{otlp: \"http://c.example.com\", service_name: \"\"}", "printable"),
            ("{otlp: \"http://c.example.com\", headers: {A: {env: KEY}}}", "allow_plaintext: true"),
            ("{otlp: \"https://c.example.com\", headers: {A: {env: KEY}, a: {env: KEY}}}", "repeated"),
            ("{otlp: \"https://c.example.com\", headers: {Host: {env: KEY}}}", "set by the proxy itself"),
            ("{otlp: \"https://c.example.com\", headers: {\"A:\": {env: KEY}}}", "header name"),
            ("{otlp: \"https://c.example.com\", headers: {A: {env: LINES}}}", "line end inside"),
            ("{otlp: \"https://c.example.com\", headers: [a]}", "names to secrets"),
            ("{otlp: \"https://c.example.com\", tls: {ca_file: /no/such}}", "can't use"),
            ("{otlp: \"http://127.0.0.1:8080\"}", "leads back to this proxy"),
            ("{otpl: \"http://127.0.0.1:4318\"}", "otlp"),
        ])
    func bad(yaml: String, words: String) {
        do throws(ConfigurationError) {
            _ = try parse("tracing: \(yaml)", environment: ["KEY": "0123", "LINES": "a\nb"])
            Issue.record("\(yaml) passed")
        } catch {
            #expect(error.problems.contains { $0.description.contains(words) }, "\(error.problems)")
            #expect(!error.problems.contains { $0.description.contains("0123") })
        }
    }

    @Test func `headers go over http where allow_plaintext says so; TLS keys without TLS are warned of`() throws {
        let text = "tracing: {otlp: \"http://c.example.com\", headers: {A: {env: K}}, allow_plaintext: true, tls: {}}"
        let (configuration, warnings) = try parse(text, environment: ["K": "v"])
        #expect(configuration.tracing?.headers.count == 1)
        #expect(warnings.contains { $0.description.contains("no effect on an http:// URL") })
    }
}
