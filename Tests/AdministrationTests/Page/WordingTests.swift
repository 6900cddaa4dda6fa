import TestSupport
import Testing

@testable import Administration
@testable import Heimdallr

@Suite("what people read", .timeLimit(.minutes(2)))
struct WordingTests {
    private func client(_ change: (inout HeimdallrStatus) -> Void = { _ in }) -> HeimdallrStatus {
        var status = HeimdallrStatus(
            client: "api", grantType: "client_credentials", scope: [], state: .backingOff, hasRefreshToken: false,
            waiters: 0, hasSettled: true)
        change(&status)
        return status
    }

    private func unavailable(_ fault: TokenEndpointFault) -> HeimdallrError {
        .tokenEndpointUnavailable(fault, retryAfter: .zero)
    }

    @Test func `a wrong address is blamed on the issuer's metadata only where there is an issuer`() {
        var status = client { $0.lastAddress = "https://idp.example.com/token" }
        for fault in [TokenEndpointFault.status(404), .status(405), .redirect(302), .answer(.notJSON)] {
            let plain = Advice(status).sentence(for: unavailable(fault))
            #expect(plain.contains("https://idp.example.com/token"))
            #expect(!plain.contains("issuer") && !plain.contains("metadata"), "\(plain)")
            #expect(plain.contains("token_endpoint"), "\(plain)")
            status.issuer = "https://idp.example.com"
            let discovered = Advice(status).sentence(for: unavailable(fault))
            #expect(discovered.contains("metadata"), "\(discovered)")
            status.issuer = nil
        }
    }

    @Test func `no text on a terminal or a page has marks in it that only a source has`() async throws {
        for (answer, state) in [
            (TokenEndpointAnswer.token(accessToken, type: "mac"), "backing_off"),
            (.error("invalid_scope"), "backing_off"),
            (.error("invalid_target"), "backing_off"), (.json(#"{"access_token": "x"}"#), "backing_off"),
        ] {
            let admin = try await AdministeredProxy(TokenEndpoint([answer]), client: "exportable: true")
            try await admin.reaches(state)
            var browser = Browser(admin)
            let page = try await browser.get("/").text
            #expect(page.contains("What to do: "))
            #expect(page.firstMatch(of: /What to do: [^\n]*<code>/) != nil, "\(page)")
            var texts = [page.replacing("&#96;", with: "`")]
            for verb in [
                ["status"], ["status", "--json"], ["why", "GET", "http://api.test/"], ["token", "api"],
                ["why", "GET", "http://nobody.test/"],
            ] {
                let run = try await RunningProxy.run(verb + ["--socket", admin.socket])
                texts.append(run.output + run.errors)
            }
            for text in texts { #expect(!text.contains("`"), "\(text)") }
        }
        // With the configuration's words set as such, and what a server sent left alone.
        #expect(
            Sentence.runs("write `a: b`, or `c`") == [
                .init(text: "write ", isCode: false), .init(text: "a: b", isCode: true),
                .init(text: ", or ", isCode: false), .init(text: "c", isCode: true),
            ])
        #expect(Sentence.runs("one ` alone") == [.init(text: "one  alone", isCode: false)])
    }

    @Test func `advice to change basic_encoding names the other of two values`() {
        let status = client { $0.ambiguousEncoding = .form }
        let refused = TokenEndpointFault.refused(OAuthError(status: 401, code: .invalidClient, detail: nil, uri: nil))
        let advice = Advice(status).sentence(for: .clientRefused(refused, retryAfter: .zero))
        #expect(
            advice.contains("try another basic_encoding: percent or raw (it is form now)"), "\(advice)")
    }

    @Test func `no full stop stands behind an address, where it would be copied with it`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser()
        var browser = Browser(admin)
        let page = try await browser.get("/").text
        #expect(page.firstMatch(of: /Redirect URI to register at the server: http:[^ <]*callback</) != nil, "\(page)")
        for text in ["see https://a.example.com/x", "run heimdallr-proxy login api"] {
            #expect(Sentence.ended(text) == text)
        }
        #expect(Sentence.ended("wait") == "wait.")
        #expect(Sentence.ended("at https://a.example.com, or elsewhere") == "at https://a.example.com, or elsewhere.")
    }

    @Test func `token says sign in, as the command and the page do`() async throws {
        let admin = try await AdministeredProxy.signedInAtABrowser(more: "exportable: true")
        let run = try await admin.run("token", "api")
        #expect(run.ending == .exited(1))
        #expect(!run.errors.contains("log in"), "\(run.errors)")
        #expect(run.errors.contains("There is no token: somebody has to sign in first.\n"), "\(run.errors)")
        #expect(run.errors.hasSuffix("or by heimdallr-proxy login api\n"), "\(run.errors)")
    }
}
