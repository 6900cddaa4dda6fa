import CurlTransport
import Heimdallr
import HeimdallrCurl
import TestSupport
import Testing

/// Everything a token endpoint can do to us, over libcurl and real sockets.
@Suite struct `Faults of a token endpoint` {
    struct Case: Sendable, CustomTestStringConvertible {
        let name: String
        let answer: TokenEndpointAnswer
        let fault: TokenEndpointFault
        var testDescription: String { name }

        init(_ name: String, _ answer: TokenEndpointAnswer, _ fault: TokenEndpointFault) {
            self.name = name
            self.answer = answer
            self.fault = fault
        }
    }

    static let cases: [Case] = [
        Case("500", .status(500), .status(500)),
        Case("500 with HTML", .html(500), .status(500)),
        Case("503", .status(503), .status(503)),
        Case("503, Retry-After in seconds", .status(503, fields: [("Retry-After", "2")]), .status(503)),
        Case(
            "503, Retry-After as a date",
            .status(
                503,
                fields: [
                    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Retry-After", "Sun, 06 Nov 1994 08:49:40 GMT"),
                ]), .status(503)),
        Case("503, Retry-After is nonsense", .status(503, fields: [("Retry-After", "soon")]), .status(503)),
        Case("429", .status(429, fields: [("Retry-After", "1")]), .limited(429, nil)),
        Case("400, empty", .status(400), .status(400)),
        Case("401, empty", .status(401), .status(401)),
        Case("403, empty", .status(403), .status(403)),
        Case("404 with HTML", .html(404), .status(404)),
        Case("400 with cut JSON", .json(#"{"error":"invalid_cl"#, status: 400), .status(400)),
        Case("400 with an error that is no string", .json(#"{"error":{"code":7}}"#, status: 400), .status(400)),
        refused("invalid_request"), refused("invalid_client"), refused("invalid_grant"),
        refused("unauthorized_client"), refused("unsupported_grant_type"), refused("invalid_scope"),
        refused("server_error"), refused("temporarily_unavailable"), refused("tea_break"),
        Case("200 with an error", .error("invalid_client", status: 200), refusal("invalid_client", 200)),
        Case("200, empty", .status(200), .answer(.emptyBody)),
        Case("200 with HTML", .html(200), .answer(.foreign(.webPage))),
        Case("200, cut JSON", .json(#"{"access_token":"T1","tok"#), .answer(.notJSON)),
        Case("200, JSON of the wrong shape", .json(#"["access_token","T1"]"#), .answer(.notAnObject)),
        Case("200, a token of the wrong type", .json(#"{"access_token":{"a":1}}"#), .answer(.noAccessToken)),
        Case(
            "200, two access tokens",
            .json(#"{"access_token":"T1","access_token":"T2","token_type":"Bearer"}"#), .answer(.notJSON)),
        Case("200, an empty token", .token(""), .answer(.noAccessToken)),
        Case("200, no type", .token("T1", type: nil), .answer(.noTokenType)),
        Case("200, an unknown type", .token("T1", type: "mac"), .answer(.unknownTokenType("mac"))),
        Case("200, expired", .token("T1", expiresIn: "0"), .answer(.alreadyExpired)),
        Case("200, expired long ago", .token("T1", expiresIn: "-1000000000000000000"), .answer(.alreadyExpired)),
        Case("200, a token with a line end", .token(#"T1\r\nX: y"#), .answer(.badAccessToken)),
        Case("302", .redirect(302, to: "http://127.0.0.1:1/token"), .redirect(302)),
        Case("307", .redirect(307, to: "/elsewhere"), .redirect(307)),
        Case("1 GiB", TokenEndpointAnswer(manner: .flood(1 << 30)), .network(.bodyTooLarge)),
        Case(
            "dripping for ever",
            TokenEndpointAnswer(body: String(repeating: " ", count: 10_000), manner: .drip(.milliseconds(20))),
            .network(.timeout)),
        Case("silence", .silence, .network(.timeout)),
        Case("reset", .reset, .network(.cut)),
        Case("closed without an answer", .close, .network(.cut)),
        Case(
            "cut in the body", TokenEndpointAnswer(body: #"{"access_token":"T1"}"#, manner: .cut(after: 9)),
            .network(.cut)),
    ]

    @Test(
        "each fault of a token endpoint is named, keeps nothing bad, and ends with the first good answer",
        arguments: cases)
    func recovery(of fault: Case) async throws {
        let endpoint = try TokenEndpoint([fault.answer, .token("T1")])
        let clock = ManualClock(chance: 0.9)
        let store = RecordingStore()
        let client = try makeClient(
            endpoint, store: store, clock: clock.clock, httpClient: try SharedCurl.client()
        ) { $0.timeout = .milliseconds(800) }
        let error = try await client.refusal()
        #expect(error.fault == fault.fault)
        #expect(client.status().lastError?.fault == fault.fault)
        #expect(await store.saves.isEmpty)

        // A burst gets the remembered failure.
        let patience = fault.fault.looksPermanent ? Duration.seconds(3600) : .milliseconds(300)
        for _ in 0..<10 { #expect(try await client.refusal(waiting: patience).fault == fault.fault) }
        #expect(endpoint.requests.count == 1)

        let retryAfter = try #require(error.retryAfter)
        #expect(retryAfter >= .milliseconds(900))
        #expect(error.isFinal == fault.fault.looksPermanent)
        clock.advance(by: retryAfter)
        #expect(try await client.accessToken().value == Secret("T1"))
        #expect(client.status().lastError == nil)
        #expect(endpoint.requests.count == 2)
    }

    @Test("an endpoint that does not listen, or whose name is unknown, is a fault of the network")
    func noServer() async throws {
        for (url, expected) in [
            ("http://127.0.0.1:\(try freePort())/token", HeimdallrHTTPClientError.connect),
            ("http://nowhere.invalid/token", .dns),
        ] {
            let client = try client(of: url, through: try SharedCurl.client())
            let error = try await client.refusal()
            #expect(error.fault == .network(expected), "\(url)")
        }
    }

    @Test("a certificate that nobody vouches for gets no secret; with its authority named it does")
    func untrustedCertificate() async throws {
        let authority = try await PrivateCA()
        let nginx = try await Nginx(
            certificate: try await authority.server(),
            locations: #"location / { return 200 '{"access_token":"T1","token_type":"Bearer"}'; }"#)
        let url = "https://localhost:\(nginx.httpsPort)/token"
        let error = try await client(of: url, through: try SharedCurl.client()).refusal()
        guard case .network(.tls(let reason)) = error.fault else { throw TestFailure("\(error)") }
        #expect(reason.contains("SSL certificate problem"))
        #expect("\(error)".contains(reason))
        #expect(try nginx.accessLog().isEmpty)
        let settings = CurlHTTPClientSettings(trustAnchors: .only(file: authority.certificateFile))
        let trusting = try client(of: url, through: try CurlHTTPClient(settings: settings))
        #expect(try await trusting.accessToken().value == Secret("T1"))
    }

    private func client(of url: String, through http: any HeimdallrHTTPClient) throws -> Heimdallr {
        var configuration = HeimdallrConfiguration(tokenEndpoint: url)
        configuration.allowPlaintext = true
        return try Heimdallr(
            configuration: configuration,
            credentials: OAuthClientSecretCredentials(identifier: "app", secret: Secret("s")), httpClient: http,
            clock: ManualClock(chance: 0.9).clock)
    }

    @Test("odd but valid answers of a token endpoint are taken")
    func oddButValid() async throws {
        let long = String(repeating: "x", count: 16 * 1024)
        for (answer, value) in [
            (TokenEndpointAnswer.token("T1", type: "BEARER", expiresIn: #""3600""#), "T1"),
            (.token("T1", expiresIn: "3599.5"), "T1"), (.token("T1", expiresIn: "1000000000000000000"), "T1"),
            (.token("T1", expiresIn: nil), "T1"), (.token("T1", extra: #""scope":["a","b"]"#), "T1"),
            (.json("\u{FEFF}" + #"{"access_token":"T1","token_type":"bearer"}"#), "T1"), (.token(long), long),
            (
                TokenEndpointAnswer(
                    201, fields: [("Content-Type", "text/html")],
                    body: " {\"access_token\" : \"T1\", \"token_type\":\"bearer\"}\r\n"), "T1"
            ),
        ] {
            let endpoint = try TokenEndpoint([answer])
            let client = try makeClient(endpoint, httpClient: try SharedCurl.client())
            #expect(try await client.accessToken().value.revealed == value)
        }
        let endpoint = try TokenEndpoint([.token("T1", extra: #""username":"guest","id_token":"a.b.c","n":1"#)])
        let token = try await makeClient(endpoint).accessToken()
        #expect(token.extra == ["username": .string("guest"), "n": .number("1")])
    }

    private static func refused(_ code: String) -> Case {
        Case("400 \(code)", .error(code), refusal(code, 400))
    }

    private static func refusal(_ code: String, _ status: Int) -> TokenEndpointFault {
        .refused(OAuthError(status: status, code: OAuthError.Code(rawValue: code)))
    }
}

/// One event loop for all tests that go through libcurl.
enum SharedCurl {
    private static let shared = Result { try CurlHTTPClient() }

    static func client() throws -> CurlHTTPClient { try shared.get() }
}

extension HeimdallrError {
    var isFinal: Bool {
        if case .clientRefused = self { true } else { false }
    }
}
