import Glibc
import TestSupport
import Testing

@Suite("nginx and Apache as upstreams over HTTP/2", .timeLimit(.minutes(3)))
struct HTTP2UpstreamTests {
    private static let size = 5 << 20

    /// Puts a file of 5 MiB, and gets it back.
    private func exchangeFile(by proxy: RunningProxy, _ name: String) async throws {
        let body = (0..<Self.size / 16).map { "line \(String($0 + 1_000_000)) .\n" }.joined()
        for fields in [[String](), ["--header", "Transfer-Encoding: chunked"]] {
            try await ChildProcess.output(
                of: [
                    "curl", "--silent", "--show-error", "--fail", "--output", "/dev/null", "--proxy", proxy.url,
                    "--upload-file", "-", "--header", "Expect:",
                ] + fields + ["http://api.test/\(name)"], input: Array(body.utf8))
            let back = try await proxy.get("http://api.test/\(name)")
            #expect(back.status == 200)
            #expect(back.text == body)
        }
    }

    /// The server refuses the file before all of it has come.
    private func isRefused(by proxy: RunningProxy, _ name: String) async throws {
        for _ in 0..<3 {
            let client = try await RawClient.connect(port: proxy.port)
            try await client.send(
                "PUT http://api.test/\(name) HTTP/1.1\r\nHost: api.test\r\nContent-Length: \(Self.size)\r\n\r\n")
            try await client.send([UInt8](repeating: 0x61, count: 64 << 10))
            let response = try await client.response(to: "PUT")
            #expect(response.status == 413)
        }
    }

    // MARK: nginx

    private static let nginxFiles = """
        keepalive_requests 5;
        location / { root FOLDER; dav_methods PUT; }
        location /small/ { root FOLDER; dav_methods PUT; create_full_put_path on; client_max_body_size 1m; }
        location /which { return 200 "$connection $server_protocol"; }
        """

    private func nginxAndProxy(tls: Bool) async throws -> (Nginx, RunningProxy) {
        let authority = try await PrivateCA()
        let nginx = try await Nginx(
            certificate: try await authority.server(), locations: Self.nginxFiles, isKnown: true)
        let proxy =
            tls
            ? try await RunningProxy(
                to: "https://localhost:\(nginx.httpsPort)",
                upstream: "http2: true\ntls: {ca_file: \(authority.certificateFile)}")
            : try await RunningProxy(
                to: "http://127.0.0.1:\(nginx.httpPort)", upstream: "http2: prior-knowledge")
        return (nginx, proxy)
    }

    @Test(arguments: [true, false])
    func `nginx takes and gives files, and refuses one early`(tls: Bool) async throws {
        let (nginx, proxy) = try await nginxAndProxy(tls: tls)
        try await exchangeFile(by: proxy, "file")
        try await isRefused(by: proxy, "small/file")
        let log = try nginx.accessLog()
        #expect(log.contains("PUT /file HTTP/2.0 201"))
        #expect(!log.contains("HTTP/1.1"))
    }

    /// nginx sends GOAWAY behind the answer to the last request of a connection.
    @Test(arguments: [true, false])
    func `the end of nginx's connections loses no request`(tls: Bool) async throws {
        let (nginx, proxy) = try await nginxAndProxy(tls: tls)
        let found = try await withThrowingTaskGroup(of: [String].self) { group in
            for _ in 0..<4 {
                group.addTask {
                    var found: [String] = []
                    for _ in 0..<15 {
                        let response = try await proxy.send("POST", "http://api.test/which", body: "x")
                        #expect(response.status == 200)
                        found.append(response.text)
                    }
                    return found
                }
            }
            return try await group.reduce(into: [String]()) { $0 += $1 }
        }
        #expect(found.count == 60 && found.allSatisfy { $0.hasSuffix(" HTTP/2.0") })
        #expect(Set(found).count >= 12)
        #expect(try nginx.accessLog().split(separator: "\n").count == 60)
    }

    @Test func `without HTTP/2, the same connection serves HTTP/1.1, and so do later ones`() async throws {
        let authority = try await PrivateCA()
        let nginx = try await Nginx(
            certificate: try await authority.server(),
            locations: "location / { return 200 \"$connection $server_protocol\"; }",
            http2: false)
        let proxy = try await RunningProxy(
            to: "https://localhost:\(nginx.httpsPort)",
            upstream: "http2: true\ntls: {ca_file: \(authority.certificateFile)}")
        var found: Set<String> = []
        for method in ["POST", "GET", "POST"] {
            let response = try await proxy.send(method, "http://api.test/", body: method == "POST" ? "x" : nil)
            #expect(response.status == 200)
            found.insert(response.text)
        }
        #expect(found.count == 1 && found.first?.hasSuffix(" HTTP/1.1") == true)
    }

    /// libcurl speaks HTTP/1.1 to the proxy, so HTTP/2 is offered to the upstream alone.
    @Test(.enabled(if: getuid() == 0, "mounting wants root"))
    func `an HTTP/2 upstream is reached through a next proxy over TLS that offers HTTP/2 itself`() async throws {
        let nginx = try await Nginx.secure()
        let next = try await TLSServerProcess(["/usr/bin/python3", fixture("tls_next_proxy.py")])
        // libcurl trusts a proxy by the system's anchors.
        let anchors = next.authority.certificateFile
        let proxy = try await RunningProxy(
            to: "https://localhost:\(nginx.httpsPort)",
            upstream: """
                http2: true
                proxy: https://localhost:\(next.port)
                tls: {ca_file: \(nginx.authority.certificateFile)}
                """,
            under: [
                "unshare", "--mount", "sh", "-c",
                "mount --bind \(anchors) /etc/ssl/certs/ca-certificates.crt && exec \"$@\"", "sh",
            ])
        for _ in 0..<2 {
            #expect(try await proxy.get("http://api.test/x").text.contains("request: GET /x HTTP/2.0\n"))
        }
        let lines = next.output.split(separator: "\n").dropFirst()
        #expect(lines == ["None CONNECT localhost:\(nginx.httpsPort) HTTP/1.1"])
    }

    // MARK: Apache

    private func apacheAndProxy(tls: Bool, keepAlive: Int = 100) async throws -> (Apache, RunningProxy) {
        let authority = try await PrivateCA()
        let apache = try await Apache(certificate: try await authority.server(), keepAlive: keepAlive)
        let proxy =
            tls
            ? try await RunningProxy(
                to: "https://localhost:\(apache.httpsPort)",
                upstream: "http2: true\ntls: {ca_file: \(authority.certificateFile)}")
            : try await RunningProxy(
                to: "http://127.0.0.1:\(apache.httpPort)", upstream: "http2: prior-knowledge")
        return (apache, proxy)
    }

    @Test(arguments: [true, false])
    func `Apache takes and gives files, and refuses one early`(tls: Bool) async throws {
        let (apache, proxy) = try await apacheAndProxy(tls: tls)
        try await exchangeFile(by: proxy, "file")
        try await isRefused(by: proxy, "small/file")
        #expect(try apache.accessLog().contains(" PUT /file HTTP/2.0 201"))
        #expect(try !apache.accessLog().contains("HTTP/1.1"))
    }

    @Test(arguments: [true, false])
    func `the end of Apache's connections loses no request`(tls: Bool) async throws {
        let (apache, proxy) = try await apacheAndProxy(tls: tls, keepAlive: 5)
        for number in 0..<30 {
            #expect(try await proxy.send("PUT", "http://api.test/\(number)", body: "x").status == 201)
        }
        try await eventually("Apache has logged them") {
            try apache.accessLog().split(separator: "\n").count { $0.contains(" HTTP/2.0 201") } == 30
        }
    }
}
