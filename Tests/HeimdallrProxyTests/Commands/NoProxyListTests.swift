import Configuration
import Testing

@testable import HeimdallrProxy

@Suite("what exec leaves out of the proxy")
struct NoProxyListTests {
    private func list(_ yaml: String, _ inherited: String?...) throws -> NoProxyList {
        let (configuration, _) = try Configuration.parse(yaml: yaml, file: "c.yaml", environment: [:])
        return NoProxyList(extending: inherited, for: configuration)
    }

    @Test func `no_proxy gets this machine and the upstreams' own listeners`() throws {
        let yaml = """
            proxy: {listen: 127.0.0.1:8080}
            upstreams:
              - {host: a.test, listen: 127.0.0.1:9001}
              - {host: b.test, listen: "[::1]:9002"}
              - {host: c.test, listen: 0.0.0.0:9003}
            """
        #expect(
            try list(yaml.replacing("{listen: 127.0.0.1:8080}", with: "{listen: 127.0.0.1:8080, open: true}"))
                .value == "localhost,127.0.0.1,::1,127.0.0.0/8")
    }

    @Test func `entries of no_proxy that are there already stay, in front and once`() throws {
        let yaml = "upstreams: [{host: a.test, listen: 127.0.0.2:9001}]"
        #expect(
            try list(yaml, "internal.test, 10.0.0.0/8", "localhost,internal.test").value
                == "internal.test,10.0.0.0/8,localhost,127.0.0.1,::1,127.0.0.0/8,127.0.0.2")
        #expect(try list(yaml, nil, "*").warnings.first?.contains("no_proxy has *") == true)
    }

    @Test func `a host that is signed is not left out, be it loopback`() throws {
        let yaml = "upstreams: [{host: \"127.0.0.1:5000\", listen: 127.0.0.1:9001}, {host: localhost}]"
        #expect(try list(yaml).value == "::1,127.0.0.1:8080,127.0.0.1:9001")
    }

    @Test(
        arguments: [
            ("api.corp.example", true), ("corp.example", true), (".corp.example", true), ("*.corp.example", true),
            ("api.corp.example:443", true), ("api.corp.example:8443", true), ("10.0.0.0/8", true), ("fd00::/8", true),
            ("10.1.2.3", true), ("api.corp.example.com", false), ("orp.example", false), ("11.0.0.0/8", false),
            ("localhost", false), ("2001:db8::/32", true), ("", false),
        ])
    func `an inherited entry that keeps a program from an upstream is warned of`(entry: String, warns: Bool) throws {
        let yaml = "upstreams: [{host: api.corp.example}, {host: 10.1.2.3}, {host: \"[fd00::1]\"}]"
        #expect(try list(yaml, entry).warnings.contains { $0.contains("no_proxy has \(entry)") } == warns)
    }

    @Test func `an enclosed program is warned of no entry that keeps others from the proxy`() throws {
        let yaml = "upstreams: [{host: api.corp.example}, {host: 10.1.2.3}, {host: \"*.corp.example\"}]"
        let (configuration, _) = try Configuration.parse(yaml: yaml, file: "c.yaml", environment: [:])
        let inherited = "*,api.corp.example,corp.example,10.0.0.0/8"
        #expect(NoProxyList(extending: [inherited], for: configuration).warnings.count == 4)
        let list = NoProxyList(extending: [inherited, "fd00::/8"], for: configuration, isEnclosed: true)
        #expect(list.warnings.count == 1 && list.warnings.first?.contains("httpx") == true)
        #expect(list.value.hasPrefix(inherited))
    }

    @Test func `Java gets the proxy and the same exceptions as properties`() throws {
        let direct = try list("upstreams: [{host: a.test}]", ".corp.example,10.0.0.0/8,172.16.0.0/12,b.test:99")
        let options = JavaProxyOptions.adding(
            to: ["JAVA_TOOL_OPTIONS": "-Xmx64m"], "http://alice:secret@127.0.0.1:8080", direct, tls: true)
        #expect(
            options == "-Xmx64m -Dhttp.proxyHost=127.0.0.1 -Dhttp.proxyPort=8080 -Dhttps.proxyHost=127.0.0.1 "
                + "-Dhttps.proxyPort=8080 -Dhttp.nonProxyHosts=*.corp.example|10.*|localhost|127.0.0.1|[::1]|127.*")
        let plain = JavaProxyOptions.adding(to: [:], "http://127.0.0.1:8080", direct, tls: false)
        #expect(plain.hasPrefix("-Dhttp.proxyHost=127.0.0.1 ") && !plain.contains("https"))
    }
}
