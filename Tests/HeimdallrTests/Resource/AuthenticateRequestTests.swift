import Foundation
import FoundationNetworking
import HTTPTypes
import Heimdallr
import HeimdallrFoundation
import HeimdallrHTTPTypes
import Synchronization
import Testing

/// Programs with their own type of request. That this file compiles shows that no name of ours clashes with theirs.
@Suite("authenticateRequest: one more try where a 401 is the token's fault", .timeLimit(.minutes(1)))
struct AuthenticateRequestTests {
    private final class Asked: Sendable { let count = Atomic(0) }

    /// Tokens T1, T2, T3, …
    private func heimdallr(
        _ authenticator: any ResourceRequestAuthenticator = ResourceRequestAuthenticatorHTTPHeader()
    ) throws -> (Heimdallr, Asked) {
        let asked = Asked()
        let http = ScriptedHTTPClient { _ in
            let number = asked.count.add(1, ordering: .relaxed).newValue
            let answer = #"{"access_token":"T\#(number)","token_type":"Bearer","expires_in":3600}"#
            return HeimdallrHTTPResponse(status: 200, body: Array(answer.utf8))
        }
        let heimdallr = try Heimdallr(
            configuration: HeimdallrConfiguration(tokenEndpoint: "https://idp.example.com/token"),
            credentials: OAuthClientSecretCredentials(identifier: "x", secret: SecretClosureProvider { Secret("s") }),
            httpClient: http, authenticator: authenticator)
        return (heimdallr, asked)
    }

    private func token(of request: HeimdallrHTTPRequest) -> String? {
        request.headers.first { $0.name == "Authorization" }?.value
    }

    @Test(arguments: [
        [], ["Bearer"], ["Bearer realm=\"x\", error=\"invalid_token\""],
        ["Basic realm=\"a, Bearer error\", Bearer realm=\"y\""],
        ["Negotiate", "Bearer error=invalid_token"],
    ])
    func `a 401 that blames the token gets a new token, and the request goes once more`(challenges: [String])
        async throws
    {
        let (heimdallr, _) = try heimdallr()
        var sent: [String?] = []
        func call(_ refused: Set<String>) async throws -> Int {
            try await heimdallr.authenticateRequest(HeimdallrHTTPRequest(url: "https://api.example.com/")) { request in
                sent.append(token(of: request))
                let isRefused = refused.contains(token(of: request) ?? "")
                let fields = challenges.map { HeimdallrHTTPField(name: "www-authenticate", value: $0) }
                return HeimdallrHTTPResponse(status: isRefused ? 401 : 200, headers: isRefused ? fields : [])
            }.status
        }
        #expect(try await call([]) == 200)
        #expect(try await call(["Bearer T1"]) == 200)
        #expect(sent == ["Bearer T1", "Bearer T1", "Bearer T2"])
        // The new one is kept.
        #expect(try await call(["Bearer T1"]) == 200)
        #expect(sent.last == "Bearer T2")
    }

    @Test func `a 401 that a new token does not help is the answer, after two tries`() async throws {
        let (heimdallr, asked) = try heimdallr()
        var sent = 0
        func call(_ refused: Bool, _ challenge: String) async throws -> Int {
            try await heimdallr.authenticateRequest(HeimdallrHTTPRequest(url: "https://api.example.com/")) { _ in
                sent += 1
                return HeimdallrHTTPResponse(
                    status: refused ? 401 : 200,
                    headers: [HeimdallrHTTPField(name: "WWW-Authenticate", value: challenge)])
            }.status
        }
        #expect(try await call(false, "Bearer") == 200)
        #expect(try await call(true, "Bearer error=\"invalid_token\"") == 401)
        #expect(sent == 3)
        #expect(asked.count.load(ordering: .relaxed) == 2)
        // Another scheme, or another fault: not the token's.
        for challenge in [
            "Basic realm=\"Bearer error=invalid_token\"", "Bearer error=\"insufficient_scope\"", "Bearer =",
        ] {
            let before = sent
            #expect(try await call(true, challenge) == 401)
            #expect(sent == before + 1, "\(challenge)")
        }
        #expect(asked.count.load(ordering: .relaxed) == 2)
    }

    @Test func `one host's 401s take the token from no other, and start fewer and fewer token requests`() async throws {
        let (heimdallr, asked) = try heimdallr()
        func call(_ host: String, _ status: Int) async throws -> (Int, [String?]) {
            var sent: [String?] = []
            let request = HeimdallrHTTPRequest(url: "https://\(host)/v1?x=1")
            let answer = try await heimdallr.authenticateRequest(request) { request in
                sent.append(token(of: request))
                return HeimdallrHTTPResponse(status: status)
            }
            return (answer.status, sent)
        }
        #expect(try await call("good.example.com", 200).1 == ["Bearer T1"])
        for _ in 0..<20 { #expect(try await call("bad.example.com", 401).0 == 401) }
        #expect(asked.count.load(ordering: .relaxed) == 2)
        #expect(heimdallr.hasAccessToken)
        #expect(try await call("good.example.com", 200).1 == ["Bearer T2"])
        // Letter case, path and query make no other host of it.
        #expect(try await call("BAD.example.com", 401).1.count == 1)
    }

    @Test func `where no new token can be had, the old one serves on, and the 401 is the answer`() async throws {
        let asked = Asked()
        let http = ScriptedHTTPClient { _ in
            guard asked.count.add(1, ordering: .relaxed).newValue == 1 else {
                return HeimdallrHTTPResponse(status: 503)
            }
            let answer = #"{"access_token":"T1","token_type":"Bearer","expires_in":3600}"#
            return HeimdallrHTTPResponse(status: 200, body: Array(answer.utf8))
        }
        let heimdallr = try Heimdallr(
            configuration: HeimdallrConfiguration(tokenEndpoint: "https://idp.example.com/token"),
            credentials: OAuthClientSecretCredentials(identifier: "x", secret: SecretClosureProvider { Secret("s") }),
            httpClient: http)
        for (host, status) in [("a", 200), ("b", 401), ("a", 200), ("b", 401), ("a", 200)] {
            let answer = try await heimdallr.authenticateRequest(HeimdallrHTTPRequest(url: "https://\(host)/")) { _ in
                HeimdallrHTTPResponse(status: status)
            }
            #expect(answer.status == status)
        }
        #expect(heimdallr.currentToken()?.value == Secret("T1"))
    }

    @Test func `a request of swift-http-types gets its token, and a new one after a 401`() async throws {
        let (heimdallr, _) = try heimdallr()
        var request = HTTPRequest(method: .get, scheme: "https", authority: "api.example.com", path: "/v1?x=1")
        request.headerFields[.authorization] = "Basic old"
        try await heimdallr.authenticate(&request)
        #expect(request.headerFields[values: .authorization] == ["Bearer T1"])
        var sent: [String?] = []
        let (response, body) = try await heimdallr.authenticateRequest(request) { request in
            sent.append(request.headerFields[.authorization])
            return (HTTPResponse(status: sent.count == 1 ? .unauthorized : .ok), "body \(sent.count)")
        }
        #expect(response.status == .ok)
        #expect(body == "body 2")
        #expect(sent == ["Bearer T1", "Bearer T2"])

        let (query, _) = try self.heimdallr(ResourceRequestAuthenticatorQueryParameter())
        try await query.authenticate(&request)
        #expect(request.path == "/v1?x=1&access_token=T1")
    }

    @Test func `a URLRequest gets its token, and a new one after a 401`() async throws {
        let (heimdallr, _) = try heimdallr()
        let url = try #require(URL(string: "https://api.example.com/v1?x=1"))
        var request = URLRequest(url: url)
        try await heimdallr.authenticate(&request)
        #expect(request.value(forHTTPHeaderField: "Authorization") == "Bearer T1")
        var sent: [String?] = []
        let (data, _) = try await heimdallr.authenticateRequest(request) { request in
            sent.append(request.value(forHTTPHeaderField: "Authorization"))
            let response = HTTPURLResponse(
                url: url, statusCode: sent.count == 1 ? 401 : 200, httpVersion: nil,
                headerFields: ["WWW-Authenticate": "Bearer"])
            return (Data("answer".utf8), try #require(response) as URLResponse)
        }
        #expect(data == Data("answer".utf8))
        #expect(sent == ["Bearer T1", "Bearer T2"])

        let (query, _) = try self.heimdallr(ResourceRequestAuthenticatorQueryParameter())
        try await query.authenticate(&request)
        #expect(request.url?.absoluteString == "https://api.example.com/v1?x=1&access_token=T1")
    }
}
