import Foundation
import TestSupport
import Testing

@testable import Administration
@testable import Heimdallr

@Suite("advice fits the status and the place", .timeLimit(.minutes(2)))
struct AdviceTests {
    /// The text of `status` for a client whose token endpoint gives this answer.
    private func status(_ answer: TokenEndpointAnswer, client: String = "") async throws -> (text: String, url: String)
    {
        let admin = try await AdministeredProxy(TokenEndpoint([answer]), client: client)
        try await admin.reaches("backing_off")
        return (try await admin.run("status").output, admin.tokenEndpoint.url)
    }

    @Test(arguments: [401, 403])
    func `advice for a 401 or 403 is to check the secret, and how it is sent`(code: Int) async throws {
        let said = try await status(.status(code)).text
        #expect(said.contains("what to do: check client_id, client_secret and token_endpoint_auth_method\n"))
    }

    @Test func `advice for a secret that servers read in different ways says how to write it`() async throws {
        let endpoint = try TokenEndpoint([.error("invalid_client", status: 401)])
        for (encoding, others) in [("form", "percent or raw"), ("percent", "form or raw"), ("raw", "form or percent")] {
            let proxy = try await RunningProxy(
                """
                proxy: {listen: "127.0.0.1:0"}
                admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
                clients:
                  api: {token_endpoint: "\(endpoint.url)", client_id: c, client_secret: {file: FOLDER/secret}, basic_encoding: \(encoding), allow_plaintext: true}
                upstreams: [{host: api.test, client: api}]
                """, files: ["secret": "a secret/with +%& signs"])
            let line = try await eventually("the log says it") {
                proxy.log.split(separator: "\n").first { $0.contains("no token from the token endpoint") }
            }
            #expect(line.contains("basic_encoding: \(others)"), "\(line)")
            #expect(!proxy.log.contains("secret/with"))
        }
    }

    @Test func `advice for a 404, 405, redirect or web page shows the address to check`() async throws {
        for answer: TokenEndpointAnswer in [
            .status(404), .status(405), .html(200), .html(404), .redirect(302, to: "http://127.0.0.1:1/x"),
        ] {
            let (text, url) = try await status(answer)
            #expect(text.contains("what to do: check the address, \(url): "), "\(text)")
        }
    }

    @Test func `advice for an unknown token_type shows the word and how to take it, and no token in its place`()
        async throws
    {
        let text = try await status(.token(accessToken, type: "access_token")).text
        #expect(text.contains("the token_type is \"access_token\", not Bearer"))
        #expect(text.contains("write treat_as_bearer: [access_token]"))
        let leak = try await status(.token(accessToken, type: "x \(accessToken)")).text
        #expect(leak.contains("the token_type is \"x <redacted>\""))
        #expect(!leak.contains(accessToken))
    }

    @Test func `a store that is away, busy or without TLS has its own advice`() {
        let away = Advice.sentence(for: TokenStoreError("x", kind: .unreachable))
        #expect(away.contains("check that the database runs") && away.contains("remove nothing"))
        let busy = Advice.sentence(for: TokenStoreError("x", kind: .busy))
        #expect(busy.contains("the other process that uses the store") && !busy.contains("director"))
        let known = TokenStoreError("no tables", advice: "run it", kind: .unreachable)
        #expect(known.description == "no tables: run it" && known.fault == "no tables")
        #expect(Advice.sentence(for: known) == "run it")
    }

    @Test func `advice for a refused password is to check user name and password`() async throws {
        let text = try await status(
            .error("invalid_grant", status: 400),
            client: "grant_type: password\nusername: ada\npassword: wrong\nallow_deprecated: true"
        ).text
        #expect(text.contains("what to do: check the user name and the password"))
        #expect(!text.contains("refresh token"))
    }

    @Test func `advice for another issuer shows the server's, and how to write it`() throws {
        var status = HeimdallrStatus(
            client: "api", grantType: "client_credentials", scope: [], state: .backingOff, hasRefreshToken: false,
            waiters: 0, hasSettled: true)
        status.issuer = "https://idp.example.com"
        let fault = TokenEndpointFault.discovery(.otherIssuer("https://idp.example.com/"))
        let error = HeimdallrError.tokenEndpointUnavailable(fault, retryAfter: .zero)
        #expect("\(error)".contains("https://idp.example.com/"))
        #expect(Advice(status).sentence(for: error).contains("write `issuer: https://idp.example.com/`"))
        let missing = HeimdallrError.tokenEndpointUnavailable(.discovery(.status(404)), retryAfter: .zero)
        #expect(Advice(status).sentence(for: missing).contains("`issuer`, https://idp.example.com"))
        let tls = HeimdallrError.tokenEndpointUnavailable(
            .network(.tls("SSL certificate problem: self-signed certificate\n (curl 60)")), retryAfter: .zero)
        #expect("\(tls)".contains("SSL certificate problem: self-signed certificate? (curl 60)"))
        #expect(Advice(status).sentence(for: tls).contains("tls.ca_file"))
    }

    @Test func `advice goes by status, then by the client's authentication, then by the word, and names the endpoint`()
    {
        var status = HeimdallrStatus(
            client: "api", grantType: "client_credentials", scope: [], state: .backingOff, hasRefreshToken: false,
            waiters: 0, hasSettled: true)
        func advice(_ code: OAuthError.Code, _ number: Int) -> String {
            let fault = TokenEndpointFault.refused(OAuthError(status: number, code: code))
            return Advice(status).sentence(for: .clientRefused(fault, retryAfter: .zero))
        }
        for number in [429, 500, 503] { #expect(advice(.invalidClient, number) == "wait; the proxy tries again") }
        #expect(advice(.invalidClient, 404).contains("token_endpoint"))
        #expect(advice(.invalidClient, 401).contains("client_secret"))
        for (authentication, part) in [
            (ClientAuthentication.key, "kid"), (.assertion, "client_assertion"), (.certificate, "tls.cert_file"),
        ] {
            status.authentication = authentication
            for code in [OAuthError.Code.invalidClient, .init(rawValue: "AADSTS700027")] {
                let text = advice(code, 401)
                #expect(text.contains(part) && !text.contains("client_secret"), "\(text)")
            }
        }
        #expect(advice(.invalidScope, 400).contains("`scope`"))
        status.lastEndpoint = "device_authorization_endpoint"
        status.lastAddress = "https://as.example/device"
        #expect(advice(.invalidClient, 401).contains("device_authorization_endpoint"))
        #expect(advice(.invalidClient, 404).contains("device_authorization_endpoint"))
    }

    @Test func `servers' own words for a wrong client, a refused PKCE and a missing scope have advice`() {
        var status = HeimdallrStatus(
            client: "api", grantType: "authorization_code", loginMethod: .browser, scope: [], state: .backingOff,
            hasRefreshToken: false, waiters: 0, hasSettled: true)
        func refusal(_ code: String, _ detail: String? = nil) -> OAuthError {
            OAuthError(status: 200, code: .init(rawValue: code), detail: detail)
        }
        for code in ["invalid_client", "invalid_client_id", "bad_client_secret", "incorrect_client_credentials"] {
            let fault = TokenEndpointFault.refused(refusal(code))
            #expect(Advice(status).sentence(for: .clientRefused(fault, retryAfter: .zero)).contains("client_secret"))
            let signIn = Advice(status).sentence(for: LoginError.refused(refusal(code))) ?? ""
            #expect(signIn.contains("client_secret") && signIn.contains("`pkce: off`"), "\(signIn)")
        }
        status.authentication = .none
        #expect(Advice(status).sentence(for: LoginError.refused(refusal("invalid_client")))?.contains("pkce") == false)
        #expect(Advice(status).sentence(for: LoginError.refused(refusal("user_cancelled_login"))) == nil)
        let scope = TokenEndpointFault.refused(refusal("invalid_request", "the body must contain 'scope'"))
        #expect(
            Advice(status).sentence(for: .clientRefused(scope, retryAfter: .zero)).contains("`refresh_scope: none` out")
        )
        let missing = TokenEndpointFault.answer(.noMember("authed_user.access_token"))
        #expect("\(missing)".contains("authed_user.access_token"))
        #expect(!Advice(status).sentence(for: .clientRefused(missing, retryAfter: .zero)).contains("elsewhere"))
    }

    @Test func `advice never tells to write a template of issuers`() {
        let status = HeimdallrStatus(
            client: "api", grantType: "client_credentials", scope: [], state: .backingOff, hasRefreshToken: false,
            waiters: 0, hasSettled: true)
        let template = "https://login.example/{tenantid}/v2.0"
        for fault in [DiscoveryFault.otherIssuer(template), .unlistedIssuer("https://a.example", listed: [template])] {
            let error = HeimdallrError.tokenEndpointUnavailable(.discovery(fault), retryAfter: .zero)
            let advice = Advice(status).sentence(for: error)
            #expect(!advice.contains("{") && !advice.contains("write one of them"), "\(advice)")
            #expect(!"\(fault)".contains("exactly as"))
        }
    }

    @Test func `who has to sign in again reads why`() async throws {
        let endpoint = try TokenEndpoint { request, _ in
            request["grant_type"] == "refresh_token"
                ? .error("invalid_grant", status: 400, description: "the session was ended by an administrator")
                : .token(accessToken, expiresIn: "2", refreshToken: refreshToken)
        }
        let admin = try await AdministeredProxy.signedInAtABrowser(endpoint)
        var browser = Browser(admin)
        let state = try #require(try await browser.begin()["state"])
        #expect(try await browser.get("/callback?code=x&state=\(state)", Browser.foreign).status == 200)
        _ = try await admin.proxy.get("http://api.test/")
        try await admin.reaches("ready")
        let proxy = admin.proxy
        _ = try await eventually("the refresh is refused") {
            endpoint.requests.contains { $0["grant_type"] == "refresh_token" } ? true : nil
        }
        try await admin.reaches("needs_authentication")
        let words = "invalid_grant: the session was ended by an administrator"
        #expect(try await admin.run("status").output.contains("refused: \(words)"))
        #expect(try await admin.get("/status").text.contains(words))
        #expect(try await browser.get("/").text.contains(words))
        _ = try await eventually("the log says it") { proxy.log.contains(words) ? true : nil }
    }

    @Test func `the page and status say what redirect URI to register`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let uri = "http://127.0.0.1:\(admin.adminPort)/callback"
        #expect(try await browser.get("/").text.contains(uri))
        #expect(try await admin.run("status").output.contains("redirect URI to register at the server: \(uri)\n"))
    }

    @Test func `a refused sign-in: the redirect URI only where the server means it, and PAR where that was refused`() {
        var signIn = SignInWay(client: "api", method: .browser, url: nil)
        signIn.redirectURI = "http://127.0.0.1:8081/callback"
        let advice = Advice(signIn)
        func refusal(_ code: String, _ detail: String?) -> OAuthError {
            OAuthError(status: 400, code: .init(rawValue: code), detail: detail)
        }
        let registered = "register http://127.0.0.1:8081/callback at the server as the client's redirect URI"
        for (code, detail) in [
            ("invalid_request", nil), ("invalid_request", "Invalid Redirect_URI"),
            ("invalid_redirect_uri", "not yours"),
        ] as [(String, String?)] {
            #expect(advice.sentence(for: LoginError.refused(refusal(code, detail))) == registered)
        }
        for (code, detail) in [
            ("invalid_request", "the scope is repeated"), ("unauthorized_client", nil), ("odd", "no such thing"),
        ] as [(String, String?)] {
            #expect(
                advice.sentence(for: LoginError.refused(refusal(code, detail)))
                    == "allow this sign-in for the client at the server, and compare the client's settings with the "
                    + "server's message"
            )
            let pushed = advice.sentence(for: LoginError.pushRefused(refusal(code, detail)))
            #expect(pushed?.contains("`par: off`") == true && pushed?.contains("redirect") == false, "\(pushed ?? "")")
        }
        let both = advice.sentence(for: LoginError.pushRefused(refusal("invalid_redirect_uri", nil)))
        #expect(both?.hasPrefix(registered) == true && both?.contains("`par: off`") == true)
        #expect(
            advice.sentence(for: LoginError.pushRefused(refusal("invalid_client", nil)))?.contains("client_secret")
                == true)
    }

    @Test func `a blank at the end of a secret is not blamed on the encoding`() async throws {
        for (secret, isBlamed) in [("a secret ", false), ("\ts3cret", false), ("a secret", true)] {
            let credentials = OAuthClientSecretCredentials(identifier: "c", secret: Secret(secret))
            var request = TokenRequest(form: [], headers: [])
            try await credentials.authenticate(&request)
            #expect((request.ambiguousEncoding != nil) == isBlamed, "\(secret)")
        }
    }

    @Test func `an API's refusal is its own, and status shows it`() async throws {
        let status = HeimdallrStatus(
            client: "api", grantType: "client_credentials", scope: [], state: .backingOff, hasRefreshToken: false,
            lastError: .rejectedByResource(retryAfter: .seconds(1)), waiters: 0, hasSettled: true)
        let advice = Advice(status).sentence(for: .rejectedByResource(retryAfter: .seconds(1)))
        #expect(advice.contains("audience"))
        #expect(!advice.contains("authorization server"))
    }
}
