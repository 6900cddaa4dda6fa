import Heimdallr
import TestSupport

/// Something that a token endpoint, or the way to it, does.
struct TokenFault: Sendable {
    var name: String
    var answer: TokenEndpointAnswer
    /// Asked instead of the endpoint.
    var url: String?
    /// Its name in status, events and the log.
    var fault: TokenEndpointFault

    init(_ name: String, _ answer: TokenEndpointAnswer, _ fault: TokenEndpointFault) {
        self.name = name
        self.answer = answer
        self.fault = fault
    }

    /// On the way to the endpoint.
    init(_ name: String, url: String, _ error: HeimdallrHTTPClientError) {
        self.init(name, .status(500), .network(error))
        self.url = url
    }

    /// - Parameter untrusted: an https URL with an untrusted certificate.
    static func all(untrusted: String) -> [TokenFault] {
        errorStatuses + oauthErrors + badAnswers + brokenConnections + [
            TokenFault("refused", url: "http://127.0.0.1:1/token", .connect),
            TokenFault("no such host", url: "http://nowhere.invalid/token", .dns),
            TokenFault(
                "untrusted certificate", url: untrusted,
                .tls("SSL certificate problem: unable to get local issuer certificate (curl 60)")),
        ]
    }

    private static let errorStatuses: [TokenFault] = [
        TokenFault("500", .status(500), .status(500)),
        TokenFault("500 with HTML", .html(500), .status(500)),
        TokenFault("503", .status(503), .status(503)),
        TokenFault("503, Retry-After in seconds", .status(503, fields: [("Retry-After", "1")]), .status(503)),
        TokenFault(
            "503, Retry-After a date",
            .status(
                503,
                fields: [
                    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Retry-After", "Sun, 06 Nov 1994 08:49:38 GMT"),
                ]), .status(503)),
        TokenFault("429", .status(429, fields: [("Retry-After", "1")]), .limited(429, nil)),
        TokenFault("400, empty", .status(400), .status(400)),
        TokenFault("401, empty", .status(401), .status(401)),
        // The server has answered with JSON before, so something in between answers.
        TokenFault("403, empty", .status(403), .webPage(403)),
        TokenFault("404 with HTML", .html(404), .status(404)),
        TokenFault("302", .redirect(302, to: "/elsewhere"), .redirect(302)),
        TokenFault("307", .redirect(307, to: "/elsewhere"), .redirect(307)),
    ]

    private static let oauthErrors: [TokenFault] = [
        "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
        "invalid_scope", "server_error", "temporarily_unavailable", "tea_break",
    ].map { code in
        TokenFault(
            "400 \(code)", .error(code), .refused(OAuthError(status: 400, code: OAuthError.Code(rawValue: code))))
    }

    private static let badAnswers: [TokenFault] = [
        TokenFault(
            "200, empty", .status(200), .answer(.emptyBody)),
        TokenFault("200 with HTML", .html(200), .answer(.foreign(.webPage))),
        TokenFault("200, cut JSON", .json(#"{"access_token":"T3","tok"#), .answer(.notJSON)),
        TokenFault("200, an array", .json(#"["access_token","T3"]"#), .answer(.notAnObject)),
        TokenFault("200, a token that is an object", .json(#"{"access_token":{"a":1}}"#), .answer(.noAccessToken)),
        TokenFault("200, no token_type", .token("T3", type: nil), .answer(.noTokenType)),
        TokenFault(
            "200, token_type mac", .token("T3", type: "mac"), .answer(.unknownTokenType("mac"))),
        TokenFault("200, a token with a line end", .token(#"T3\r\nX: y"#), .answer(.badAccessToken)),
        TokenFault(
            "200, expires_in 0", .token("T3", expiresIn: "0"), .answer(.alreadyExpired)),
        TokenFault("200, expires_in negative", .token("T3", expiresIn: "-5"), .answer(.alreadyExpired)),
    ]

    private static let brokenConnections: [TokenFault] = [
        TokenFault("1 GiB", TokenEndpointAnswer(manner: .flood(1 << 30)), .network(.bodyTooLarge)),
        TokenFault(
            "a body that drips for ever",
            TokenEndpointAnswer(body: String(repeating: " ", count: 10_000), manner: .drip(.milliseconds(20))),
            .network(.timeout)),
        TokenFault("silence", .silence, .network(.timeout)),
        TokenFault("reset", .reset, .network(.cut)),
        TokenFault("closed without an answer", .close, .network(.cut)),
        TokenFault(
            "cut in the body", TokenEndpointAnswer(body: #"{"access_token":"T3"}"#, manner: .cut(after: 9)),
            .network(.cut)),
    ]
}
