import Foundation
import Playground
import TestSupport
import Testing

/// Over real sockets: what a person agrees to.
@Suite struct SignInTests {
    private static let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    /// Of RFC 7636, appendix B.
    private static let challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    private static let callback = "http://127.0.0.1:9/callback"

    private func authorize(_ playground: Playground, _ changes: [String: String] = [:]) async throws -> RawResponse {
        var parameters = [
            "response_type": "code", "client_id": playground.credentials.clientID, "redirect_uri": Self.callback,
            "scope": "read write", "state": "s t&te", "code_challenge": Self.challenge, "code_challenge_method": "S256",
        ]
        parameters.merge(changes) { $1 }
        var address = URLComponents(string: playground.authorizationServer + "/authorize")
        address?.queryItems = parameters.map { URLQueryItem(name: $0, value: $1) }
        return try await playground.send("GET", try #require(address?.string))
    }

    private func send(_ playground: Playground, _ path: String, _ form: String) async throws -> RawResponse {
        try await playground.post(path, form, secret: nil)
    }

    private func token(_ playground: Playground, _ form: String) async throws -> (status: Int, json: [String: Any]) {
        let answer = try await playground.post("token", form)
        return (answer.status, try answer.json)
    }

    private func decide(_ playground: Playground, _ decision: String) async throws -> [String: String] {
        let page = try await authorize(playground)
        #expect(page.status == 200)
        #expect(page.field("Content-Type")?.hasPrefix("text/html") == true)
        #expect(page.text.contains("<main>"))
        let ticket = try #require(try /name="ticket" value="([^"]+)"/.firstMatch(in: page.text)?.1)
        let answer = try await send(playground, "authorize", "ticket=\(ticket)&decision=\(decision)")
        #expect(answer.status == 303)
        // The page was answered, and can't be answered again.
        #expect(try await send(playground, "authorize", "ticket=\(ticket)&decision=allow").status == 400)
        let location = try #require(answer.field("Location"))
        #expect(location.hasPrefix(Self.callback + "?"))
        let items = URLComponents(string: location)?.queryItems ?? []
        return Dictionary(uniqueKeysWithValues: items.map { ($0.name, $0.value ?? "") })
    }

    @Test func `a code after consent is good once, for the right verifier, and brings refresh tokens that rotate`()
        async throws
    {
        try await withPlayground { playground in
            let answer = try await decide(playground, "allow")
            #expect(answer["state"] == "s t&te")
            #expect(answer["iss"] == playground.authorizationServer)
            let code = try #require(answer["code"])
            let form = "grant_type=authorization_code&code=\(code)&redirect_uri=\(Self.callback)&code_verifier="
            let (status, json) = try await token(playground, form + Self.verifier)
            #expect(status == 200)
            #expect(json["scope"] as? String == "read write")
            let first = try #require(json["refresh_token"] as? String)
            let (again, rotated) = try await token(playground, "grant_type=refresh_token&refresh_token=\(first)")
            #expect(again == 200)
            let second = try #require(rotated["refresh_token"] as? String)
            #expect(second != first)
            // A code that comes back was stolen, and all that came of it ends.
            #expect(try await token(playground, form + Self.verifier).json["error"] as? String == "invalid_grant")
            let ended = try await token(playground, "grant_type=refresh_token&refresh_token=\(second)")
            #expect(ended.json["error"] as? String == "invalid_grant")

            let other = try #require(try await decide(playground, "allow")["code"])
            let wrong = try await token(
                playground,
                "grant_type=authorization_code&code=\(other)&redirect_uri=\(Self.callback)&code_verifier=wrong")
            #expect(wrong.json["error"] as? String == "invalid_grant")
        }
    }

    @Test func `a person who denies it gives no code`() async throws {
        try await withPlayground { playground in
            let answer = try await decide(playground, "deny")
            #expect(answer["error"] == "access_denied")
            #expect(answer["code"] == nil)
            #expect(answer["state"] == "s t&te")
        }
    }

    @Test func `nobody is sent off this machine, and without PKCE there is no consent to give`() async throws {
        try await withPlayground { playground in
            for uri in [
                "http://evil.example/cb", "https://127.0.0.1/cb", "http://127.0.0.1.evil.example/",
                "javascript:alert(1)",
                "http://127.0.0.1:9@evil.example/", "http://127.0.0.1:9/#x", "http://[::1].evil.example/", "",
            ] {
                let answer = try await authorize(playground, ["redirect_uri": uri])
                #expect(answer.status == 400, "\(uri)")
                #expect(answer.field("Location") == nil)
            }
            #expect(try await authorize(playground, ["client_id": "another"]).status == 400)
            for (change, error) in [
                (["code_challenge_method": "plain"], "invalid_request"), (["code_challenge": ""], "invalid_request"),
                (["response_type": "token"], "unsupported_response_type"), (["scope": "admin"], "invalid_scope"),
            ] {
                let answer = try await authorize(playground, change)
                #expect(answer.status == 303)
                #expect(answer.field("Location")?.contains("error=\(error)") == true, "\(change)")
            }
        }
    }

    @Test func `a device waits until its code is allowed on the page, and has one exchange`() async throws {
        try await withPlayground { playground in
            func begin() async throws -> (device: String, user: String) {
                let json = try await playground.post("device_authorization", "scope=read").json
                #expect(json["verification_uri"] as? String == playground.authorizationServer + "/device")
                return (try #require(json["device_code"] as? String), try #require(json["user_code"] as? String))
            }
            let (device, user) = try await begin()
            let poll = "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=\(device)"
            #expect(try await token(playground, poll).json["error"] as? String == "authorization_pending")
            #expect(try await token(playground, poll).json["error"] as? String == "slow_down")
            let page = try await playground.send(
                "GET", "\(playground.authorizationServer)/device?user_code=%22%3E%3Cb%3E\(user)")
            #expect(page.text.contains("&quot;&gt;&lt;b&gt;\(user)"))
            #expect(try await send(playground, "device", "user_code=WRONG-CODE&decision=allow").status == 400)
            let typed = user.lowercased().replacing("-", with: " ").replacing(" ", with: "+")
            #expect(try await send(playground, "device", "user_code=\(typed)&decision=allow").status == 200)
            let (status, json) = try await token(playground, poll)
            #expect(status == 200)
            #expect(json["refresh_token"] as? String != nil)
            #expect(try await token(playground, poll).json["error"] as? String == "expired_token")

            let (denied, code) = try await begin()
            #expect(try await send(playground, "device", "user_code=\(code)&decision=deny").status == 200)
            let outcome = try await token(
                playground, "grant_type=urn:ietf:params:oauth:grant-type:device_code&device_code=\(denied)")
            #expect(outcome.json["error"] as? String == "access_denied")
        }
    }

    @Test(arguments: ["oauth-authorization-server", "openid-configuration"])
    func `the playground's metadata names all its endpoints`(name: String) async throws {
        try await withPlayground { playground in
            let json = try await playground.send("GET", "\(playground.authorizationServer)/.well-known/\(name)").json
            #expect(json["issuer"] as? String == playground.authorizationServer)
            #expect(json["authorization_endpoint"] as? String == playground.authorizationServer + "/authorize")
            #expect(json["code_challenge_methods_supported"] as? [String] == ["S256"])
        }
    }
}
