import Heimdallr
import Testing

@testable import Configuration

@Suite struct `Settings for servers that differ from the standards` {
    private static let browser = "grant_type: authorization_code, issuer: https://i.example"

    private func yaml(_ client: String) -> String {
        "clients:\n  a: {client_id: a, \(client)}\nupstreams: [{host: a.example.com, client: a}]\nadmin: {}\n"
    }

    private func auto(_ keys: String) -> String {
        "upstreams: [{host: mcp.example.com, client: auto, auto: {\(keys)}}]\nadmin: {}\n"
    }

    private func client(_ yaml: String) throws -> (ClientSettings, warnings: [String]) {
        let (configuration, warnings) = try good(yaml)
        return (configuration.clients[0], warnings.filter { !$0.contains("add `store`") })
    }

    @Test func `a grant's own word is sent with the parameters beside it`() throws {
        let zoom = "token_endpoint: https://zoom.example/token, client_secret: '${SECRET}', grant_type: "
        let (client, warnings) = try client(yaml(zoom + "account_credentials, params: {account_id: x}"))
        #expect(client.grantType == .extension("account_credentials") && warnings == [])
        let unknown = try self.client(yaml(zoom + "saml"))
        #expect(unknown.0.grantType == .extension("saml"))
        #expect(unknown.warnings.count == 1 && unknown.warnings[0].contains("does not know this grant"))
        let near = problems(yaml(zoom + "client_credential"))
        #expect(near.count == 1 && near[0].contains("write client_credentials"), "\(near)")
    }

    @Test(arguments: [
        ("https://login.example/TENANT_ID/v2.0", "TENANT_ID"), ("https://YOUR_DOMAIN.example.com", "YOUR_DOMAIN"),
        ("https://TENANT.eu.auth0.example/", "TENANT"), ("https://YOUR-ORG.example", "YOUR-ORG"),
        ("https://i.example/realms/REALM", "REALM"), ("https://i.example/API/OAUTH2", nil),
        ("https://i.example/3F2504E0-4F89-11D3-9A0C-0305E82C3301/v2.0", nil), ("https://i.example/IDENTITY", nil),
    ]) func `words in capitals that stand for the operator's own value are warned of`(
        issuer: String, word: String?
    ) throws {
        let own = try client(
            yaml("grant_type: authorization_code, issuer: '\(issuer)', redirect_uri: 'http://127.0.0.1:1/x'"))
        let auto = try client(auto("issuer: '\(issuer)', client_id: a"))
        for warnings in [own.warnings, auto.warnings] {
            let found = warnings.filter { $0.contains("stands for your own value") }
            #expect(found.count == (word == nil ? 0 : 1), "\(warnings)")
            if let word { #expect(found.first?.contains("issuer: \(word) stands") == true, "\(found)") }
        }
        #expect(
            try client(
                yaml("token_endpoint: 'https://i.example/t', client_secret: x, client_id: YOUR_ID")
                    .replacing("client_id: a, ", with: "")
            ).warnings.contains { $0.contains("YOUR_ID stands") })
    }

    @Test func `a part of an URL in braces is named as a template`() {
        for (text, part) in [("https://login.example/{tenant}/v2.0", "{tenant}"), ("https://<domain>/t", "<domain>")] {
            let found = problems(yaml("client_secret: x, token_endpoint: '\(text)'"))
            #expect(found.count == 1 && found[0].contains("write your own value in place of \(part)"), "\(found)")
            #expect(!found[0].contains("absolute URL"))
        }
    }

    @Test func `an empty secret is written as an empty text`() throws {
        let cf = "token_endpoint: https://uaa.example/oauth/token, client_secret: \"\""
        let (client, warnings) = try client(yaml(cf))
        #expect(client.clientSecret == .literal("") && client.authMethod == .clientSecretBasic && warnings == [])
        let signed = problems(yaml(cf + ", token_endpoint_auth_method: client_secret_jwt"))
        #expect(signed.count == 1 && signed[0].contains("can't be empty"), "\(signed)")
        #expect(!problems(yaml("token_endpoint: https://i.example/t, client_secret: ")).isEmpty)
        let (discovered, _) = try self.client(auto("issuer: https://i.example, client_id: cf, client_secret: \"\""))
        #expect(discovered.clientSecret == .literal("") && discovered.authMethod == .clientSecretBasic)
    }

    @Test func `pkce off is for a confidential client, with a warning, and under auto for one server`() throws {
        let (client, warnings) = try client(yaml(Self.browser + ", client_secret: '${SECRET}', pkce: off"))
        #expect(client.pkce == .off && warnings.count == 1 && warnings[0].contains("without PKCE"), "\(warnings)")
        #expect(try self.client(yaml(Self.browser + ", pkce: S256")).0.pkce == .s256)
        #expect(try self.client(auto("issuer: https://i.example, client_id: a, pkce: S256")).0.pkce == .s256)
        for (text, part) in [
            (yaml(Self.browser + ", pkce: off"), "no secret and no key"),
            (yaml("grant_type: device_code, issuer: https://i.example, pkce: off"), "belongs to `grant_type: auth"),
            (auto("client_id: a, pkce: S256"), "write the server that this is about as `issuer`"),
            (auto("issuer: https://i.example, client_id: a, pkce: off"), "no secret and no key"),
        ] {
            let found = problems(text)
            #expect(found.count == 1 && found[0].contains(part), "\(found)")
        }
    }

    @Test func `the token's member and the id token can be set, for auto too`() throws {
        let keys = "token_member: authed_user.access_token, id_token: off"
        let (client, warnings) = try client(yaml(Self.browser + ", scope: openid, " + keys))
        #expect(client.tokenMember == "authed_user.access_token" && !client.usesIDToken && warnings == [])
        let (discovered, _) = try self.client(auto(keys))
        #expect(discovered.tokenMember == "authed_user.access_token" && !discovered.usesIDToken)
        for wrong in ["a..b", "$.a", "a[0]", ".a", "a b", "a.b.c.d.e.f.g.h.i"] {
            #expect(problems(yaml(Self.browser + ", token_member: '\(wrong)'")).count == 1, "\(wrong)")
        }
    }
}
