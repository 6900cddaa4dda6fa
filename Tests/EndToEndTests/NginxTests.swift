import TestSupport
import Testing

@Suite("nginx as upstream gets the request with a token", .timeLimit(.minutes(3)))
struct NginxTests {
    @Test func `nginx gets the request with its token over http`() async throws {
        let nginx = try await Nginx()
        let proxy = try await RunningProxy(to: "http://127.0.0.1:\(nginx.httpPort)")
        let response = try await proxy.get("http://api.test/a//b/../c?d=%7E&e")
        #expect(response.status == 200)
        #expect(response.text.contains("request: GET /a//b/../c?d=%7E&e HTTP/1.1\n"))
        #expect(response.text.contains("\nhost: 127.0.0.1:\(nginx.httpPort)\n"))
        #expect(response.text.contains("\nauthorization: Bearer \(token)\n"))
        #expect(response.text.contains("\nvia: 1.1 heimdallr-proxy\n"))
        // Nothing that the program did not send.
        #expect(response.text.contains("\nuser-agent: \naccept: \n"))
    }

    @Test func `nginx compresses with via: false, as for the program itself`() async throws {
        let nginx = try await Nginx(
            locations:
                "gzip on; gzip_types text/plain; gzip_min_length 1; location / { default_type text/plain; return 200 \"\(String(repeating: "x", count: 2000))\"; }"
        )
        for (line, coding) in [("", String?.none), ("via: false", "gzip")] {
            let proxy = try await RunningProxy(to: "http://127.0.0.1:\(nginx.httpPort)", upstream: line)
            let answer = try await proxy.get("http://api.test/", fields: [("Accept-Encoding", "gzip")])
            #expect(answer.status == 200)
            #expect(answer.field("Content-Encoding") == coding)
        }
    }

    @Test(arguments: [(false, "HTTP/1.1"), (true, "HTTP/2.0")])
    func `nginx gets the request over TLS with a private CA`(http2: Bool, version: String) async throws {
        let nginx = try await Nginx.secure()
        let proxy = try await RunningProxy(
            to: "https://localhost:\(nginx.httpsPort)",
            upstream: "http2: \(http2)\ntls: {ca_file: \(nginx.authority.certificateFile)}")
        for method in ["GET", "POST", "GET"] {
            let response = try await proxy.send(
                method, "http://api.test/x", body: method == "POST" ? String(repeating: "b", count: 100_000) : nil)
            #expect(response.status == 200)
            #expect(response.text.contains("request: \(method) /x \(version)\n"))
            #expect(response.text.contains("\nhost: localhost:\(nginx.httpsPort)\n"))
            #expect(response.text.contains("\nauthorization: Bearer \(token)\n"))
            #expect(response.text.contains("\nserver-name: localhost\n"))
        }
    }

    @Test(arguments: [false, true])
    func `bodies to and from nginx arrive whole`(http2: Bool) async throws {
        let authority = try await PrivateCA()
        // A file server that also takes files (the DAV module): an uploaded file can be downloaded.
        let nginx = try await Nginx(
            certificate: try await authority.server(), locations: "location / { root FOLDER; dav_methods PUT DELETE; }")
        let proxy = try await RunningProxy(
            to: "https://localhost:\(nginx.httpsPort)",
            upstream: "http2: \(http2)\ntls: {ca_file: \(authority.certificateFile)}")
        var body = ""
        for line in 0..<200_000 { body += "line \(line)\n" }
        for (name, fields) in [("plain", [String]()), ("chunked", ["--header", "Transfer-Encoding: chunked"])] {
            try await ChildProcess.output(
                of: [
                    "curl", "--silent", "--show-error", "--fail", "--proxy", proxy.url, "--upload-file", "-",
                    "--header",
                    "Expect:",
                ] + fields + ["http://api.test/\(name)"],
                input: Array(body.utf8))
            let back = try await proxy.get("http://api.test/\(name)")
            #expect(back.status == 200)
            #expect(back.text == body)
        }
    }

    @Test func `nginx gets the client certificate that it asks for`() async throws {
        let nginx = try await Nginx.secure(asksClients: true)
        let client = try await nginx.authority.client("sidecar")
        let endpoint = try TokenEndpoint.plain()
        let url = "https://localhost:\(nginx.httpsPort)"
        let tls = "ca_file: \(nginx.authority.certificateFile)"
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: endpoint.url,
                upstreams: ProxyConfiguration.upstream(
                    "with.test", url: url,
                    "tls: {\(tls), cert_file: \(client.certificateFile), key_file: \(client.keyFile)}"),
                ProxyConfiguration.upstream("without.test", url: url, "tls: {\(tls)}")))
        #expect(try await proxy.get("http://with.test/").text.contains("\nclient-certificate: CN=sidecar\n"))
        #expect(try await proxy.get("http://without.test/").status == 400)
    }

    @Test func `a further CA at the top serves every upstream`() async throws {
        let nginx = try await Nginx.secure()
        let proxy = try await RunningProxy(
            to: "https://localhost:\(nginx.httpsPort)", more: "tls: {ca_file: \(nginx.authority.certificateFile)}")
        #expect(try await proxy.get("http://api.test/").status == 200)
    }
}
