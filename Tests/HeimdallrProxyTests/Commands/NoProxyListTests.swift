import Configuration
import Testing

@testable import HeimdallrProxy

@Suite("what exec leaves out of the proxy")
struct NoProxyListTests {
    private func list(_ yaml: String, _ inherited: String?...) throws -> NoProxyList {
        let (configuration, _) = try Configuration.parse(yaml: yaml, file: "c.yaml", environment: [:])
        return NoProxyList(extending: inherited, for: configuration)
    }

    @Test func `this machine and our listeners`() throws {
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

    @Test func `what is there already stays, in front and once`() throws {
        let yaml = "upstreams: [{host: a.test, listen: 127.0.0.2:9001}]"
        #expect(
            try list(yaml, "internal.test, 10.0.0.0/8", "localhost,internal.test").value
                == "internal.test,10.0.0.0/8,localhost,127.0.0.1,::1,127.0.0.0/8,127.0.0.2")
        #expect(try list(yaml, nil, "*").takesEverything)
    }

    @Test func `a host that is signed is not left out, be it loopback`() throws {
        let yaml = "upstreams: [{host: \"127.0.0.1:5000\", listen: 127.0.0.1:9001}, {host: localhost}]"
        #expect(try list(yaml).value == "::1,127.0.0.1:8080,127.0.0.1:9001")
    }
}
