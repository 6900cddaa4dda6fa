import Foundation
import TestSupport
import Testing

@Suite("Servers that others wrote know the client by its key or its certificate", .timeLimit(.minutes(3)))
struct ClientAuthenticationTests {
    @Test(
        "authlib takes the assertion, and the next one",
        arguments: [("p256", "endpoint", "pem"), ("rsa2048", "issuer", "jwk"), ("p256", "wrong", "pem")])
    func assertion(kind: String, audience: String, form: String) async throws {
        let key = try await ForeignKeys.make(kind, form)
        let known = audience == "wrong" ? try await ForeignKeys.make(kind) : key
        let server = try await AuthorizationServer(
            .assertions(
                client: "sidecar", key: try await ForeignKeys.publicJWK(known),
                audience: audience == "issuer" ? "issuer" : "endpoint"))
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                clients: [
                    ProxyConfiguration.client(
                        tokenEndpoint: nil,
                        """
                        issuer: \(server.url)
                        client_id: sidecar
                        client_key: {file: FOLDER/key}
                        client_assertion_audience: \(audience == "issuer" ? "issuer" : "token_endpoint")
                        """)
                ], upstreams: [ProxyConfiguration.upstream(url: server.url)], files: ["key": key]))
        let response = try await proxy.get("http://api.test/thing")
        guard audience != "wrong" else {
            #expect(response.status == 502 || response.status == 503, "\(response.text)")
            try await eventually("the server's word") { try server.findings().contains { $0.result == "refused" } }
            // The log is written beside the loop.
            try await eventually("the refusal in the log") { proxy.log.contains("403") }
            return
        }
        #expect(response.status == 200, "\(server.log)\n\(proxy.log)")
        #expect(try server.findings().allSatisfy { $0.result == "issued" }, "\(server.log)")
        #expect(!proxy.log.contains("eyJ"), "no assertion in the log")
    }

    @Test("a JWT-SVID of SPIFFE is the client's identity, with its own assertion type and without a client_id")
    func jwtSVID() async throws {
        let tokens = try TokenEndpoint([.token("spiffe-token-0123456789")])
        let proxy = try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            clients:
              workload:
                token_endpoint: \(tokens.url)
                allow_plaintext: true
                client_assertion: {file: FOLDER/svid}
                client_assertion_type: jwt-spiffe
            upstreams: [{host: api.test, url: "\(tokens.url)", client: workload, allow_plaintext: true}]
            """, files: ["svid": "head.claims.signature\n"])
        #expect(try await proxy.get("http://api.test/").status == 200, "\(proxy.log)")
        let request = try #require(tokens.requests.first)
        #expect(
            request["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-spiffe")
        #expect(request["client_assertion"] == "head.claims.signature")
        #expect(request["client_id"] == nil && request.field("Authorization") == nil)
    }

    @Test(
        "nginx is shown the certificate: for the token where the server asks for one, and at the upstream",
        arguments: [
            ("tls_client_auth", false), ("self_signed_tls_client_auth", false),
            // An X.509-SVID of SPIFFE: key and chain in one file.
            ("tls_client_auth", true),
        ])
    func certificate(method: String, isOneFile: Bool) async throws {
        let tokens = try TokenEndpoint([.token("bound-token-0123456789", type: "bearer")])
        let authority = try await PrivateCA()
        let client = try await authority.client("sidecar")
        let folder = try TemporaryDirectory()
        let parts = try [client.keyFile, client.certificateFile, authority.certificateFile].map {
            try String(contentsOfFile: $0, encoding: .utf8)
        }
        let svid = try folder.write(parts.joined(), to: "svid.pem")
        let files =
            isOneFile ? "cert_file: \(svid)" : "cert_file: \(client.certificateFile), key_file: \(client.keyFile)"
        let front = try await Nginx(
            certificate: try await authority.server(), clientCA: authority.certificateFile,
            locations: """
                location /token {
                    proxy_pass \(tokens.url);
                    proxy_http_version 1.1;
                    proxy_set_header Connection "";
                    proxy_set_header X-Client $ssl_client_s_dn;
                }
                \(Nginx.sayWhatArrived)
                """)
        let url = "https://localhost:\(front.httpsPort)"
        let issuer = try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let root = "http://\(request.fields.value("Host") ?? "")"
            try exchange.respond(
                body: """
                    {"issuer":"\(root)","token_endpoint":"\(root)/elsewhere",
                    "mtls_endpoint_aliases":{"token_endpoint":"\(url)/token"}}
                    """)
        }
        let anchors = "ca_file: \(authority.certificateFile)"
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                clients: [
                    ProxyConfiguration.client(
                        tokenEndpoint: nil,
                        """
                        issuer: \(issuer.url)
                        client_id: sidecar
                        token_endpoint_auth_method: \(method)
                        tls: {\(anchors), \(files)}
                        certificate_bound: true
                        """)
                ], upstreams: [ProxyConfiguration.upstream(url: url, "tls: {\(anchors)}")]))
        let response = try await proxy.get("http://api.test/thing")
        #expect(response.status == 200, "\(response.text)\n\(proxy.log)")
        #expect(response.text.contains("\nauthorization: Bearer bound-token-0123456789\n"))
        #expect(response.text.contains("\nclient-certificate: CN=sidecar\n"))
        let request = try #require(tokens.requests.first)
        #expect(request["client_id"] == "sidecar")
        #expect(request["client_secret"] == nil)
        #expect(request.field("Authorization") == nil)
        #expect(request.field("X-Client") == "CN=sidecar")
        #expect(!issuer.requests.contains { $0.target == "/elsewhere" })
    }
}
