import Foundation
import TestSupport
import Testing

@Suite("what the proxy says when it can't", .timeLimit(.minutes(3)))
struct FailureTests {
    struct Problem: Decodable {
        var type: String
        var title: String
        var detail: String
        var client: String?
        var upstream: String?
    }

    /// Status, Proxy-Status error and a problem document that names the upstream.
    private func expect(
        _ status: Int, _ error: String, of response: RawResponse, upstream: String? = nil,
        location: SourceLocation = #_sourceLocation
    ) throws {
        #expect(response.status == status, sourceLocation: location)
        #expect(proxyError(of: response) == error, sourceLocation: location)
        #expect(response.field("Content-Type") == "application/problem+json", sourceLocation: location)
        let problem = try JSONDecoder().decode(Problem.self, from: Data(response.body))
        #expect(!problem.title.isEmpty && !problem.detail.isEmpty, sourceLocation: location)
        if let upstream { #expect(problem.upstream == upstream, sourceLocation: location) }
    }

    private func answer(toUpstream url: String, more: String = "", proxy lines: String = "") async throws -> RawResponse
    {
        let proxy = try await RunningProxy(to: url, proxy: lines, upstream: more)
        return try await proxy.get("http://api.test/x")
    }

    @Test func `a name that does not resolve`() async throws {
        let response = try await answer(toUpstream: "https://no-such-host.invalid")
        try expect(502, "dns_error", of: response, upstream: "api.test")
    }

    @Test func `a port where nobody listens`() async throws {
        let response = try await answer(toUpstream: "http://127.0.0.1:\(try freePort())")
        try expect(502, "connection_refused", of: response, upstream: "api.test")
    }

    @Test func `a certificate of nobody we trust`() async throws {
        let nginx = try await Nginx.secure()
        let response = try await answer(toUpstream: "https://localhost:\(nginx.httpsPort)")
        try expect(502, "tls_certificate_error", of: response, upstream: "api.test")
        #expect(try nginx.accessLog().isEmpty)
    }

    @Test func `a certificate for another name`() async throws {
        let nginx = try await Nginx.secure(["DNS:other.test"])
        let response = try await answer(
            toUpstream: "https://localhost:\(nginx.httpsPort)",
            more: "tls: {ca_file: \(nginx.authority.certificateFile)}")
        try expect(502, "tls_certificate_error", of: response, upstream: "api.test")
        #expect(try nginx.accessLog().isEmpty)
    }

    @Test func `a host that does not answer the connection`() async throws {
        let deaf = try DeafPort()
        let response = try await answer(toUpstream: "http://127.0.0.1:\(deaf.port)", more: "connect_timeout: 1s")
        try expect(504, "connection_timeout", of: response, upstream: "api.test")
    }

    @Test func `an upstream that takes the request and says nothing`() async throws {
        let origin = try RecordingOrigin { _ = $0.waitForPeerToLeave() }
        let response = try await answer(toUpstream: origin.url, more: "response_timeout: 1s")
        try expect(504, "http_response_timeout", of: response, upstream: "api.test")
        try await eventually("the transfer is cancelled") { origin.connections.allSatisfy(\.isEndedByPeer) }
    }

    @Test(arguments: [
        "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nonly this",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\nonly this\r\n",
    ])
    func `a response that is cut never looks complete`(answer: String) async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send(answer)
            exchange.close()
        }
        let proxy = try await RunningProxy(to: origin)
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("GET http://api.test/x HTTP/1.1\r\nHost: api.test\r\n\r\n")
        let text = String(decoding: try await client.readToEnd(), as: UTF8.self)
        // A reset may discard earlier bytes. The answer must not look complete.
        #expect(text.isEmpty || text.hasPrefix("HTTP/1.1 502") || !text.hasSuffix("\r\n0\r\n\r\n"))
        #expect(!text.contains("Content-Length: 9\r\n"))
    }

    @Test func `a host that no upstream names`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin, upstream: "paths: [/v1/]")
        try expect(403, "http_request_denied", of: try await proxy.get("http://127.0.0.1:\(origin.port)/v1/"))
        try expect(403, "http_request_denied", of: try await proxy.get("http://api.test/v2/"))
        #expect(origin.requests.isEmpty)
    }

    @Test func `a token endpoint that is down`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: "http://127.0.0.1:\(try freePort())",
                upstreams: ProxyConfiguration.upstream(url: origin.url)))
        let response = try await proxy.get("http://api.test/")
        try expect(503, "proxy_internal_response", of: response, upstream: "api.test")
        #expect(response.field("Retry-After").flatMap { Int($0) } != nil)
        #expect(origin.requests.isEmpty)
    }

    @Test func `a token endpoint that refuses the client`() async throws {
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint([.error("invalid_client", status: 401)])
        let proxy = try await RunningProxy(to: origin, tokenEndpoint: endpoint)
        let response = try await proxy.get("http://api.test/")
        try expect(502, "proxy_configuration_error", of: response, upstream: "api.test")
        #expect(origin.requests.isEmpty)
        // A burst gets the remembered failure.
        for _ in 0..<10 { _ = try await proxy.get("http://api.test/") }
        #expect(endpoint.requests.count < 6)
    }

    @Test func `the proxy's own address, also behind a name`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin, proxy: "unmatched: forward\nprivate_networks: [127.0.0.0/8, \"::1/128\"]")
        try expect(508, "proxy_loop_detected", of: try await proxy.get("http://127.0.0.1:\(proxy.port)/"))
        // A name may have further addresses. The last address dialled decides the message.
        #expect(try await proxy.get("http://localhost:\(proxy.port)/").status >= 500)
        // The whole address counts: another port is another server.
        #expect(try await proxy.get("http://localhost:\(origin.port)/").status == 200)
    }

    @Test func `a private address, unless the configuration lists its network`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin, proxy: "unmatched: forward")
        for host in ["127.0.0.1", "localhost", "[::1]"] {
            let response = try await proxy.get("http://\(host):\(origin.port)/")
            #expect((400..<600).contains(response.status))
            #expect(proxyError(of: response) != nil)
        }
        #expect(origin.requests.isEmpty)
    }

    @Test func `an upstream that leads back to the proxy is refused at start`() async throws {
        let port = try freePort()
        for host in ["127.0.0.1", "localhost"] {
            await #expect(throws: TestFailure.self) {
                _ = try await RunningProxy(
                    ProxyConfiguration(
                        listen: port, tokenEndpoint: "http://127.0.0.1:1/",
                        upstreams: ProxyConfiguration.upstream(url: "http://\(host):\(port)")))
            }
        }
    }

    @Test func `a malformed request`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin)
        for request in [
            "GET  http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n",
            "GET http://api.test/ HTTP/1.1\nHost: api.test\n\n",
            "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\nX : y\r\n\r\n",
            "POST http://api.test/ HTTP/1.1\r\nHost: api.test\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            try expect(
                400, "http_request_error", of: try await RawClient.exchange(port: proxy.port, request))
        }
        #expect(origin.requests.isEmpty)
    }

    @Test func `a head that is too large, a body that is too large, a head that is too slow`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin, proxy: "max_header_bytes: 4KiB\nmax_body_bytes: 1KiB\nheader_timeout: 1s")
        try expect(
            431, "http_request_error",
            of: try await proxy.get("http://api.test/", fields: [("X", String(repeating: "x", count: 5000))]))
        try expect(
            413, "http_request_error",
            of: try await proxy.send("POST", "http://api.test/", body: String(repeating: "x", count: 2000)))
        try expect(
            408, "http_request_error",
            of: try await RawClient.exchange(port: proxy.port, "GET http://api.test/ HTTP/1.1\r\nHost: api."))
        #expect(origin.requests.isEmpty)
    }
}
