import Foundation
import TestSupport
import Testing

@testable import Administration
@testable import Heimdallr

@Suite("status", .timeLimit(.minutes(2)))
struct StatusTests {
    @Test func `status says how the clients are, to programs and to people`() async throws {
        let admin = try await AdministeredProxy(
            TokenEndpoint([.token(accessToken, refreshToken: refreshToken)]))
        try await admin.ready()
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
        let json = try await admin.run("status", "--json")
        #expect(json.ending == .exited(0))
        let object = try #require(
            try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any])
        #expect(object["ready"] as? Bool == true)
        #expect(object["degraded"] as? Bool == false)
        let client = try #require((object["clients"] as? [[String: Any]])?.first)
        #expect(client["client"] as? String == "api")
        #expect(client["grant_type"] as? String == "client_credentials")
        #expect(client["state"] as? String == "ready")
        #expect(client["issuer"] is NSNull)
        #expect((client["token_endpoint"] as? String)?.hasPrefix("http://127.0.0.1:") == true)
        #expect(client["has_refresh_token"] as? Bool == true)
        #expect(try #require(client["expires_in_seconds"] as? Double) > 3500)
        #expect(client["last_error"] is NSNull)
        #expect(client["waiters"] as? Int == 0)
        let upstream = try #require((object["upstreams"] as? [[String: Any]])?.first)
        #expect(upstream["upstream"] as? String == "api.test")
        #expect(upstream["requests"] as? Int == 1)

        let text = try await admin.run("status")
        #expect(text.ending == .exited(0))
        #expect(text.output.contains("Client api (client_credentials) has a valid token\n"))
        #expect(text.output.contains("token expires in 59 min"))
        #expect(text.output.contains("api.test  client api  1 request, 0 server errors"))
    }

    @Test func `a client in trouble is shown with its error and what to do`() async throws {
        let description = "no \(clientSecret) \\u001b[31mfor you\\n\(String(repeating: "x", count: 500))"
        let admin = try await AdministeredProxy(
            TokenEndpoint([.error("invalid_client", status: 401, description: description)]))
        try await admin.answersReady()
        let status = try await admin.run("status")
        #expect(status.output.contains("Client api (client_credentials) has no token; waits before it asks again\n"))
        #expect(status.output.contains("last error 0 s ago: ") || status.output.contains("last error 1 s ago: "))
        #expect(status.output.contains("invalid_client"))
        #expect(status.output.contains("what to do: check client_id, client_secret and token_endpoint_auth_method\n"))
        #expect(status.output.contains("next token request in "))
        #expect(status.output.contains("degraded"))
        #expect(!status.output.contains("\u{1B}"))
        #expect(!status.output.contains(String(repeating: "x", count: 257)))
    }

    @Test func `no answer of the status holds a token or a secret`() async throws {
        let leak = "\(clientSecret) \(accessToken) \(refreshToken)"
        let endpoint = try TokenEndpoint { _, number in
            number == 0
                ? .token(accessToken, expiresIn: "2", refreshToken: refreshToken)
                : .error("invalid_request", status: 400, description: leak, uri: "https://x.example/?\(clientSecret)")
        }
        let admin = try await AdministeredProxy(endpoint, admin: "token: {file: FOLDER/admin-token}")
        try await admin.answersReady()
        let reader = try await RawClient.connect(unix: admin.socket)
        try await reader.send("GET /events HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        _ = try await reader.read(until: "retry: 3000\n\n")
        var seen = ""
        func look() async throws {
            for path in ["/status", "/status?format=text", "/metrics", "/readyz?strict", "/livez"] {
                seen += try await admin.get(path, [("Authorization", "Bearer \(adminToken)")]).text
            }
            for verb in [["status"], ["status", "--json"], ["why", "GET", "http://api.test/x?\(accessToken)"]] {
                let run = try await RunningProxy.run(verb + ["--socket", admin.socket])
                seen += run.output + run.errors
            }
        }
        // While it has the token, and when the server repeats the request's secrets.
        #expect(try await admin.proxy.get("http://api.test/").status == 200)
        try await look()
        func requests(until count: Int) async throws {
            try await eventually("token request \(count)", within: .seconds(60)) {
                _ = try await admin.proxy.get("http://api.test/")
                return endpoint.requests.count >= count
            }
        }
        try await requests(until: 2)
        seen += try await reader.read(until: "event: token_failed\n")
        try await look()
        // The refresh token is dead by then, the access token has expired, and the server still repeats both.
        try await requests(until: 4)
        try await look()
        #expect(try await admin.proxy.terminate() == .exited(0))
        seen += String(decoding: try await reader.readToEnd(), as: UTF8.self) + admin.proxy.log
        #expect(seen.contains("invalid_request"))
        let basic = Data("the-tests:\(clientSecret)".utf8).base64EncodedString()
        for secret in [accessToken, refreshToken, clientSecret, adminToken, basic, "SEKRET"] {
            #expect(!seen.contains(secret), "\(secret)")
        }
    }

    @Test(arguments: [
        (Duration.zero, "0 s"), (.milliseconds(999), "0 s"), (.seconds(59), "59 s"), (.seconds(60), "1 min"),
        (.seconds(250), "4 min 10 s"), (.seconds(7500), "2 h 5 min"), (.seconds(273_600), "3 d 4 h"),
        (.seconds(-5), "0 s"),
    ])
    func `durations are told in words`(duration: Duration, words: String) {
        #expect(StatusPage.words(duration) == words)
    }

    @Test func `each error of a client has its advice`() {
        let faults: [TokenEndpointFault] = [
            .network(.connect), .network(.dns), .network(.tls("no way")), .network(.timeout), .network(.bodyTooLarge),
            .network(.other), .status(500), .status(404), .redirect(302), .answer(.emptyBody), .stuck,
            .secret(SecretProviderError("x")),
            .refused(OAuthError(status: 400, code: .invalidScope, detail: nil, uri: nil)),
        ]
        let signIn = SignInWay(client: "api", method: .device, url: nil)
        for fault in faults {
            for error in [
                HeimdallrError.tokenEndpointUnavailable(fault, retryAfter: .zero),
                .clientRefused(fault, retryAfter: .zero),
            ] { #expect(Advice(signIn).sentence(for: error).count > 10) }
        }
        #expect(
            Advice(signIn).sentence(for: HeimdallrError.needsAuthentication) == "sign in by heimdallr-proxy login api")
        // What can't work is not said: a pasted address, a page that does not answer, a login that there is not.
        #expect(
            SignInWay(client: "api", method: .browser, url: nil).advice
                == "sign in by heimdallr-proxy login api --paste")
        #expect(
            SignInWay(client: "api", method: .browser, url: "http://127.0.0.1:8081/login/api").advice
                == "sign in at http://127.0.0.1:8081/login/api, or by heimdallr-proxy login api")
        #expect(SignInWay(client: "api", method: nil, url: nil).advice.contains("clients.api.refresh_token"))
    }
}
