@testable import Configuration
import TestSupport
import Testing

@Suite("TLS of programs that is opened")
struct InterceptionSettingsTests {
    private let pem = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"

    private func files() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        for name in ["cert.pem", "key.pem", "other.pem"] { try folder.write(name, pem) }
        return folder
    }

    @Test func `a wildcard is intercepted only where it says so itself`() throws {
        let (configuration, warnings) = try good(
            """
            proxy: {intercept: true}
            upstreams:
              - {host: a.test}
              - {host: "*.b.test", url: "https://b.test"}
              - {host: "*.c.test", url: "https://c.test", intercept: true}
              - {host: "*.internal", url: "https://d.test", intercept: true}
            """)
        #expect(configuration.upstreams.map(\.intercepts) == [true, false, true, true])
        #expect(warnings.contains { $0.contains("a key that signs for every host under .internal") })
        #expect(!warnings.contains { $0.contains("under .c.test") })
    }

    @Test func `permitted domains are taken, with a folder or without`() throws {
        let permitted = "interception: {permit: [Example.com, other.test]}\n"
        let (configuration, warnings) = try good(permitted + "upstreams: [{host: a.example.com, intercept: true}]")
        #expect(configuration.interception == InterceptionSettings(permit: ["example.com", "other.test"]))
        #expect(warnings == [])
        let idle = try good(permitted + "upstreams: [{host: a.example.com}]")
        #expect(idle.warnings.contains { $0.contains("`permit` has no effect without an upstream") })
        let both = try good(
            "interception: {permit: [a.test], directory: /d, key: {env: SECRET}}\nupstreams: [{host: a.test, intercept: true}]",
            environment: ["SECRET": String(repeating: "k", count: 32)])
        #expect(both.configuration.interception?.store?.directory == "/d")
        let wide = try good("interception: {permit: [test]}\nupstreams: [{host: a.test, intercept: true}]")
        #expect(wide.warnings.contains { $0.contains("every host under .test") })
    }

    @Test(
        arguments: [
            ("{permit: ['*.example.com']}", "write a domain such as example.com"),
            ("{permit: [127.0.0.1]}", "write a domain such as example.com"),
            ("{permit: ['a.test:443']}", "write a domain such as example.com"),
            ("{directory: /d}", "write `directory` and `key`"), ("{key: {env: SECRET}}", "write `directory` and `key`"),
            ("{}", "write `directory` and `key`"),
        ])
    func `a mistake about interception is named with what to write`(text: String, advice: String) {
        let found = problems("interception: \(text)\nupstreams: [{host: a.test, intercept: true}]")
        #expect(found.contains { $0.contains(advice) }, "\(found)")
    }

    @Test func `more than 900 permitted domains are refused`() {
        let domains = (0..<901).map { "d\($0).test" }.joined(separator: ", ")
        let found = problems("interception: {permit: [\(domains)]}\nupstreams: [{host: a.test, intercept: true}]")
        #expect(found.count == 1 && found[0].contains("at most 900 domains"), "\(found)")
    }

    @Test func `an upstream may bring its own certificate`() throws {
        let folder = try files()
        let own = "tls: {server_cert_file: \(folder.path)/cert.pem, server_key_file: \(folder.path)/key.pem}"
        let (configuration, _) = try good("upstreams: [{host: a.test, intercept: true, \(own)}]")
        let pair = ListenerTLS(certFile: "\(folder.path)/cert.pem", keyFile: "\(folder.path)/key.pem")
        #expect(configuration.upstreams[0].serverCertificate == pair)
        #expect(configuration.allServerTLS == [pair])
        #expect(configuration.upstreams[0].tls == TLSSettings())
        for (text, advice) in [
            ("[{host: a.test, \(own)}]", "write `intercept: true` too"),
            ("[{host: a.test, intercept: true, tls: {server_cert_file: \(folder.path)/cert.pem}}]", "server_key_file"),
            ("[{host: a.test, intercept: true, tls: {server_key_file: \(folder.path)/key.pem}}]", "server_cert_file"),
            (
                "[{host: a.test, intercept: true, paths: [/a], \(own)}, {host: a.test, intercept: true}]",
                "a host has one certificate"
            ),
        ] {
            let found = problems("upstreams: \(text)")
            #expect(found.count == 1 && found[0].contains(advice), "\(text): \(found)")
        }
    }
}
