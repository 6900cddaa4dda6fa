import TestSupport
import Testing

@Suite("where requests may go, and by which way", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct ReachTests {
    // MARK: Hosts that the configuration does not name

    @Test(arguments: ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "127.1.2.3"])
    func `unmatched: forward never reaches a private address`(host: String) async throws {
        let proxy = try await ProxyInProcess(proxy: "unmatched: forward")
        let response = try await proxy.request("GET", "http://\(host):\(proxy.origin.port)/")
        try expectProblem(response, "address-denied", upstream: "unmatched")
        #expect(proxy.origin.connections.isEmpty)
    }

    @Test(arguments: ["2130706433", "0x7f.1", "0177.0.0.1", "127.1"])
    func `unmatched: forward reaches no private address by another spelling of it`(host: String) async throws {
        let proxy = try await ProxyInProcess(proxy: "unmatched: forward")
        let response = try await proxy.request("GET", "http://\(host):\(proxy.origin.port)/")
        #expect([400, 403, 502].contains(response.status))
        #expect(proxy.origin.connections.isEmpty)
    }

    @Test func `private_networks are exceptions, and requests to them are not signed`() async throws {
        let proxy = try await ProxyInProcess(proxy: "unmatched: forward\nprivate_networks: [127.0.0.0/8]")
        let url = "http://localhost:\(proxy.origin.port)/x?y"
        #expect(try await proxy.request("GET", url, fields: ["Authorization: Basic bWluZQ=="]).status == 200)
        #expect(try await proxy.request("POST", url, body: "hello").status == 200)
        let requests = proxy.origin.requests
        #expect(requests.map(\.line) == ["GET /x?y HTTP/1.1", "POST /x?y HTTP/1.1"])
        #expect(requests.map { $0.values("Host") } == Array(repeating: ["localhost:\(proxy.origin.port)"], count: 2))
        #expect(requests.map(\.authorization) == [["Basic bWluZQ=="], []])
        #expect(proxy.endpoint.requests.isEmpty)
    }

    @Test func `an https target is not fetched for any program`() async throws {
        let proxy = try await ProxyInProcess(proxy: "unmatched: forward\nprivate_networks: [127.0.0.0/8]")
        let response = try await proxy.send("GET https://127.0.0.1:\(proxy.origin.port)/ HTTP/1.1\r\nHost: x\r\n\r\n")
        try expectProblem(response, "scheme-not-supported", upstream: nil)
        #expect(proxy.origin.connections.isEmpty)
    }

    @Test(arguments: ["127.0.0.1", "0.0.0.0"])
    func `the proxy's own address is a loop, told before it begins`(host: String) async throws {
        let proxy = try await ProxyInProcess(proxy: "unmatched: forward\nprivate_networks: [127.0.0.0/8, 0.0.0.0/8]")
        let response = try await proxy.request("GET", "http://\(host):\(proxy.port)/")
        try expectProblem(response, "loop", upstream: "unmatched")
    }

    // MARK: The next proxy

    @Test func `an upstream's proxy gets the whole URL, and the token for the upstream`() async throws {
        let next = try RecordingOrigin { try $0.respond(body: "by the way") }
        let proxy = try await ProxyInProcess(
            more: "- {host: far.test, url: 'http://far.example:8080/base', proxy: '\(next.url)', client: api, "
                + "allow_plaintext: true}")
        let response = try await proxy.request(
            "POST", "http://far.test/x%2F?y", fields: ["Proxy-Authorization: Basic bWluZQ=="], body: "hello")
        #expect(response.text == "by the way")
        let request = try #require(next.requests.first)
        #expect(request.line == "POST http://far.example:8080/base/x%2F?y HTTP/1.1")
        #expect(
            Set(request.fields.map(\.description)) == [
                "Host: far.example:8080", "Content-Length: 5", "Authorization: Bearer T1", "Via: 1.1 heimdallr-proxy",
            ])
        #expect(request.text == "hello")
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `a next proxy that is not there is named in the problem`() async throws {
        let proxy = try await ProxyInProcess(
            more: "- {host: far.test, url: 'http://far.example', proxy: 'http://127.0.0.1:\(try freePort())'}")
        let response = try await proxy.request("GET", "http://far.test/")
        #expect(response.status == 502)
        #expect(response.field("Proxy-Status")?.hasPrefix("heimdallr-proxy; error=") == true)
    }

    // MARK: TLS

    @Test func `TLS to the upstream is checked for its own name, with the CA that it names`() async throws {
        let nginx = try await Nginx.secure(["DNS:inner.test"])
        let proxy = try await ProxyInProcess(
            more: """
                - host: secure.test
                  url: https://127.0.0.1:\(nginx.httpsPort)
                  client: api
                  tls: {ca_file: \(nginx.authority.certificateFile), server_name: inner.test}
                - host: unnamed.test
                  url: https://127.0.0.1:\(nginx.httpsPort)
                  tls: {ca_file: \(nginx.authority.certificateFile)}
                """)
        let text = try await proxy.request("GET", "http://secure.test/x").text
        #expect(text.contains("request: GET /x HTTP/1.1\n"))
        #expect(text.contains("authorization: Bearer T1\n"))
        #expect(text.contains("server-name: inner.test\n"))
        #expect(text.contains("user-agent: \n"))
        try expectProblem(
            try await proxy.request("GET", "http://unnamed.test/"), "tls-certificate", upstream: "unnamed.test")
    }

    @Test func `an upstream with http2 that does not speak it gets HTTP 1.1, its requests whole`() async throws {
        let authority = try await PrivateCA()
        let nginx = try await Nginx(
            certificate: try await authority.server(),
            locations: Nginx.sayWhatArrived
                + "\nlocation /up { dav_methods PUT; create_full_put_path on; root FOLDER; }", http2: false)
        let proxy = try await ProxyInProcess(
            more: secureUpstream("two.test", nginx.httpsPort, nginx.authority, "http2: true")
                + "\n- {host: plain.test, url: 'http://127.0.0.1:\(nginx.httpPort)', http2: true}")
        let client = try await proxy.connect()
        let body = String(repeating: "0123456789", count: 5_000)
        try await client.send(message("PUT", "http://two.test/up/file", body: body))
        #expect([201, 204].contains(try await client.response().status))
        try await client.send(message("GET", "http://two.test/up/file"))
        #expect(try await client.response().text == body)
        for _ in 0..<3 {
            for host in ["two.test", "plain.test"] {
                try await client.send(message("GET", "http://\(host)/x"))
                #expect(try await client.response().text.contains("protocol: HTTP/1.1\n"))
            }
        }
        // One request a line: none was sent twice.
        #expect(try nginx.accessLog().split(separator: "\n").filter { $0.hasPrefix("PUT") }.count == 1)
    }

    @Test func `requests and uploads pass over HTTP 2 to the upstream`() async throws {
        let nginx = try await Nginx.secure(
            locations: Nginx.sayWhatArrived
                + "\nlocation /up { dav_methods PUT; create_full_put_path on; root FOLDER; }")
        let proxy = try await ProxyInProcess(
            more: secureUpstream("two.test", nginx.httpsPort, nginx.authority, "http2: true"))
        let client = try await proxy.connect(
            sending: message("GET", "http://two.test/x") + message("HEAD", "http://two.test/y"))
        let first = try await client.response()
        #expect(first.version == "HTTP/1.1")
        #expect(first.text.contains("protocol: HTTP/2.0\n"))
        #expect(first.text.contains("authorization: Bearer T1\n"))
        #expect(try await client.response(to: "HEAD").status == 200)
        let body = String(repeating: "0123456789", count: 50_000)
        try await client.send(message("PUT", "http://two.test/up/file", body: body))
        #expect([201, 204].contains(try await client.response().status))
        try await client.send(message("GET", "http://two.test/up/file"))
        #expect(try await client.response().status == 200)
    }
}
