@testable import Configuration
import TestSupport
import Testing

@Suite("TLS of a listener")
struct ListenerTLSTests {
    private let pem = "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"

    private func files() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        for name in ["cert.pem", "key.pem", "ca.pem"] { try folder.write(name, pem) }
        return folder
    }

    private func listener(_ folder: TemporaryFolder, address: String = "127.0.0.1:8443", clients: Bool = false)
        -> String
    {
        let clientCA = clients ? ", client_ca_file: \(folder.path)/ca.pem" : ""
        return
            "{address: \(address), tls: {cert_file: \(folder.path)/cert.pem, key_file: \(folder.path)/key.pem\(clientCA)}}"
    }

    @Test("tls becomes a value at proxy.listen and at an upstream")
    func values() throws {
        let folder = try files()
        let (configuration, _) = try good(
            """
            proxy:
              listen: [127.0.0.1:8080, \(listener(folder, clients: true))]
            upstreams:
              - host: a.test
                listen: \(listener(folder, address: "\"[::1]:9001\""))
                callers: {certificates: ["CN=worker,O=Example", "DNS:worker.example"]}
            """)
        let proxy = configuration.proxy
        #expect(proxy.listen == [.tcp(host: "127.0.0.1", port: 8080), .tcp(host: "127.0.0.1", port: 8443)])
        let tls = ListenerTLS(certFile: "\(folder.path)/cert.pem", keyFile: "\(folder.path)/key.pem")
        var verifying = tls
        verifying.clientCAFile = "\(folder.path)/ca.pem"
        #expect(proxy.listenerTLS == [proxy.listen[1]: verifying])
        #expect(configuration.upstreams[0].listen == .tcp(host: "::1", port: 9001))
        #expect(configuration.upstreams[0].listenerTLS == tls)
        #expect(configuration.allServerTLS == [tls, verifying])
        #expect(
            configuration.upstreams[0].callers.description == "certificates CN=worker,O=Example or DNS:worker.example")
    }

    @Test("a listener for other machines needs users, or clients' certificates")
    func reach() throws {
        let folder = try files()
        func found(clients: Bool) -> [String] {
            problems(
                "proxy: {unmatched: forward, listen: \(listener(folder, address: "0.0.0.0:8443", clients: clients))}")
        }
        #expect(found(clients: true) == [])
        #expect(found(clients: false).count == 1)
        #expect(found(clients: false).first?.contains("is not loopback") == true)
    }

    @Test(
        "a mistake in the TLS of a listener is refused with what to write",
        arguments: [
            ("{address: 127.0.0.1:1, tls: {}}", "a listener shows a certificate: write `cert_file`"),
            ("{address: 127.0.0.1:1, tls: {cert_file: FOLDER/cert.pem}}", "a certificate needs its key"),
            ("{unix: /run/a.sock, tls: {}}", "a Unix socket has neither `address` nor `tls`"),
            ("{address: unix:/run/a.sock}", "write host:port, such as 10.0.0.1:8443"),
            ("{address: 127.0.0.1:1, mode: \"0600\"}", "this applies to Unix sockets"),
            ("{tls: {}}", "or {address: HOST:PORT, tls: …}"),
            (
                "{address: 127.0.0.1:1, tls: {cert_file: FOLDER/none.pem, key_file: FOLDER/key.pem}}",
                "there is no such file"
            ),
            ("{address: 127.0.0.1:1, tls: {cert: a}}", "unknown key \"cert\""),
        ])
    func mistakes(listener: String, message: String) throws {
        let folder = try files()
        let found = problems(
            "proxy: {unmatched: forward, listen: \(listener.replacing("FOLDER", with: folder.path))}")
        #expect(found.contains { $0.contains(message) }, "\(found)")
    }

    @Test("callers' certificates that differ do not tie, and `tls` has no place in callers.listeners")
    func callers() throws {
        let folder = try files()
        func found(_ callers: String...) -> [String] {
            problems(
                "proxy: {listen: \(listener(folder, clients: true))}\nupstreams:\n"
                    + callers.map { "  - host: a.test\n    callers: \($0)\n" }.joined())
        }
        #expect(found("{certificates: [\"CN=a\"]}", "{certificates: [\"CN=b\"]}") == [])
        #expect(found("{certificates: [\"CN=a\"]}", "{certificates: [\"CN=b\", \"CN=a\"]}").count == 1)
        #expect(found("{listeners: \(listener(folder))}").contains { $0.contains("write only the address") })
    }
}
