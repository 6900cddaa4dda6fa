import Foundation
import TestSupport
import Testing

@Suite("client: auto works with servers whose documents leave things out", .timeLimit(.minutes(3)))
struct ZeroConfigurationProviderTests {
    private static func form(_ text: some StringProtocol) -> Provider.Form { Provider.Form(String(text)) }

    /// A server like Entra ID: no list of PKCE methods, no registration, and it refuses `resource`.
    private static func server() throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let url = "http://\(request.field("Host") ?? "")"
            let json = [("Content-Type", "application/json")]
            let query = form(request.target.split(separator: "?", maxSplits: 1).dropFirst().joined())
            if request.target.hasPrefix("/authorize") {
                let answer = query["resource"] == nil ? "code=C" : "error=invalid_target&error_description=AADSTS901002"
                let back = "\(query["redirect_uri"] ?? "")?\(answer)&state=\(query["state"] ?? "")"
                return try exchange.respond(302, fields: [("Location", back)], body: "")
            }
            guard request.method == "POST" else {
                return try exchange.respond(
                    200, fields: json,
                    body:
                        #"{"issuer":"\#(url)","authorization_endpoint":"\#(url)/authorize","token_endpoint":"\#(url)/token"}"#
                )
            }
            let sent = form(request.text)
            guard sent["resource"] == nil, sent["grant_type"] == "refresh_token" || sent["code_verifier"] != nil else {
                let words = "AADSTS901002: The 'resource' request parameter is not supported."
                return try exchange.respond(
                    400, fields: json, body: #"{"error":"invalid_request","error_description":"\#(words)"}"#)
            }
            try exchange.respond(
                200, fields: json,
                body: #"{"access_token":"T","token_type":"Bearer","expires_in":3600,"refresh_token":"R"}"#)
        }
    }

    @Test func `Entra ID gets the operator's word for PKCE, and no resource, from the sign-in to a refresh`()
        async throws
    {
        let server = try Self.server()
        let api = try publishingAPI(naming: server.url)
        let without = #"{resource: ""}"#
        let proxy = try await RunningProxy.auto(
            api.url,
            auto: """
                issuer: "\(server.url)", client_id: app, pkce: S256, \
                params: {sign_in: \(without), token: \(without), refresh: \(without)}
                """)
        #expect(try await proxy.get("http://mcp.test/x").status == 503)
        let admin = "http://\(try await proxy.administration().address)"
        _ = try await PlainBrowser().signIn("mcp.test", at: admin)
        let answer = try await proxy.get("http://mcp.test/x")
        #expect(answer.status == 200, "\(answer.text)\n\(proxy.log)")
        let refresh = try await RunningProxy.run(
            ["refresh", "--socket", proxy.directory.path(of: "admin.sock"), "mcp.test"])
        #expect(refresh.ending == .exited(0), "\(refresh.transcript)")
        let sent = server.requests.filter { $0.method == "POST" }.map { Self.form($0.text) }
        #expect(sent.map { $0["grant_type"] } == ["authorization_code", "refresh_token"])
        #expect(sent.allSatisfy { $0["resource"] == nil })
    }
}
