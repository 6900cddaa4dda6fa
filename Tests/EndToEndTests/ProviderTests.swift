import Foundation
import TestSupport
import Testing

@Suite("a provider's configuration on the page works with that provider, as people report it", .timeLimit(.minutes(5)))
struct ProviderTests {
    private static let all: [Provider] = [
        Provider(
            heading: "Entra ID for people", way: .browser,
            token: { n, _ in
                .token("T\(n)", refreshToken: "R1", extra: #""scope":"https://graph.microsoft.com/Mail.Read""#)
            },
            objection: { form in
                guard form["grant_type"] == "refresh_token", form["scope"]?.contains("Mail.Read") != true else {
                    return nil
                }
                return .error(
                    "invalid_request",
                    description: "AADSTS900144: The request body must contain the following parameter: 'scope'.")
            },
            dead: .error(
                "invalid_grant", description: "AADSTS700082: The refresh token has expired due to inactivity."),
            words: "AADSTS700082",
            refusal: .status(
                401,
                fields: [
                    (
                        "WWW-Authenticate",
                        "Bearer realm=\"\", authorization_uri=\"https://login.example/common/oauth2/authorize\", "
                            + "error=\"invalid_token\""
                    )
                ])),
        Provider(
            heading: "GitHub OAuth app", way: .device,
            token: { n, _ in .json(#"{"access_token":"T\#(n)","token_type":"bearer","scope":"repo"}"#) },
            refusal: .json(#"{"message":"Bad credentials"}"#, status: 401)),
        Provider(
            heading: "Slack", way: .browser,
            token: { n, form in
                form["grant_type"] == "authorization_code"
                    ? .json(
                        #"{"ok":true,"app_id":"A","authed_user":{"id":"U","access_token":"T\#(n)","token_type":"user","#
                            + #""scope":"chat:write","refresh_token":"R1","expires_in":43200}}"#)
                    : .json(
                        #"{"ok":true,"access_token":"T\#(n)","token_type":"user","refresh_token":"R1","#
                            + #""expires_in":43200}"#)
            },
            dead: .json(#"{"ok":false,"error":"invalid_refresh_token"}"#), words: "invalid_refresh_token",
            refusal: .status(401)),
        Provider(
            heading: "Zoom", way: .nobody,
            token: { n, _ in
                .token("T\(n)", type: "bearer", expiresIn: "3599", extra: #""scope":"user:read:admin""#)
            },
            objection: { form in
                form["grant_type"] == "account_credentials" && form["account_id"] == "ACCOUNT_ID"
                    ? nil : .json(#"{"reason":"unsupported grant type","error":"unsupported_grant_type"}"#, status: 400)
            }, refusal: .json(#"{"code":124,"message":"Access token is expired."}"#, status: 401)),
        Provider(
            heading: "LinkedIn", way: .browser,
            token: { n, _ in
                .token("T\(n)", type: nil, expiresIn: "5184000", extra: #""scope":"profile,w_member_social""#)
            },
            objection: { form in
                form["code_verifier"] == nil
                    ? nil
                    : .json(
                        #"{"error":"invalid_client","error_description":"Client authentication failed"}"#, status: 401)
            },
            refusal: .json(
                #"{"status":401,"serviceErrorCode":65601,"code":"REVOKED_ACCESS_TOKEN","message":"revoked"}"#,
                status: 401)),
        Provider(
            heading: "Zoho", way: .browser,
            token: { n, _ in
                .json(
                    #"{"access_token":"T\#(n)","refresh_token":"R1","api_domain":"https://www.zohoapis.eu","#
                        + #""token_type":"Bearer","expires_in":3600}"#)
            }, dead: .json(#"{"error":"invalid_code"}"#), words: "invalid_code",
            refusal: .json(#"{"code":"INVALID_TOKEN","message":"invalid oauth token","status":"error"}"#, status: 401),
            scheme: "Zoho-oauthtoken"),
        Provider(
            heading: "Mailchimp", way: .browser,
            token: { n, _ in .json(#"{"access_token":"T\#(n)","expires_in":0,"scope":null}"#) },
            refusal: .json(#"{"title":"API Key Invalid","status":401,"detail":"may have been disabled"}"#, status: 401)),
        Provider(
            heading: "Salesforce", way: .nobody,
            token: { n, _ in
                .json(
                    #"{"access_token":"T\#(n)","scope":"api","instance_url":"https://x.my.salesforce.com","#
                        + #""token_type":"Bearer"}"#)
            },
            refusal: .json(
                #"[{"message":"Session expired or invalid","errorCode":"INVALID_SESSION_ID"}]"#, status: 401,
                fields: [("WWW-Authenticate", "Token")])),
    ]

    @Test(
        "each provider's sign-in, ended token and dead refresh token are handled, with its words",
        arguments: all.map(\.heading))
    func whole(heading: String) async throws {
        let provider = try #require(Self.all.first { $0.heading == heading })
        let played = try await PlayedProvider(provider)
        try await played.signIn()
        #expect(try await played.get().status == 200, "\(played.proxy.log)")
        #expect(played.tokens.last == "\(provider.scheme) T1")

        // The API refuses the token before its end.
        played.endTokens()
        let next = try await played.get()
        if provider.way == .nobody || provider.dead != nil {
            #expect(next.status == 200, "\(next.text)\n\(played.proxy.log)")
            #expect(played.issued == 2)
        } else {
            #expect([401, 503].contains(next.status))
            try await recovers(played)
        }

        guard let dead = provider.dead else { return }
        played.endRefreshToken()
        played.endTokens()
        #expect([401, 503].contains(try await played.get().status))
        try await eventually("a person is asked for", within: .seconds(60)) {
            _ = try await played.command("refresh")
            return try await played.status().contains("the server refused: ")
        }
        let status = try await played.status()
        #expect(status.contains(provider.words), "\(status)")
        try await eventually("the hook") {
            played.hooks.contains { $0.contains("needs_authentication") && $0.contains(provider.words) }
        }
        #expect(!dead.body.isEmpty && !played.proxy.log.contains("R1"))
        played.endRefreshToken(false)
        try await recovers(played)
    }

    /// A person signs in again, and the API takes the new token.
    private func recovers(_ played: PlayedProvider) async throws {
        played.endTokens()
        try await played.signIn()
        try await eventually("the new token", within: .seconds(30)) { try await played.get().status == 200 }
    }
}
