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
    /// The behaviour of other proxies, where known.
    var peers = ""

    init(_ name: String, _ answer: TokenEndpointAnswer, _ fault: TokenEndpointFault, peers: String = "") {
        self.name = name
        self.answer = answer
        self.fault = fault
        self.peers = peers
    }

    /// On the way to the endpoint.
    init(_ name: String, url: String, _ error: HeimdallrHTTPClientError) {
        self.init(name, .status(500), .network(error), peers: Self.envoyDown)
        self.url = url
    }

    private static let envoyDown = "Envoy sends the expired token"
    private static let envoyMalformed = "Envoy has no token 12 s after the end of it"

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
        TokenFault("500", .status(500), .status(500), peers: envoyDown),
        TokenFault("500 with HTML", .html(500), .status(500), peers: "Heimdallr.swift forgets its tokens"),
        TokenFault("503", .status(503), .status(503), peers: "NXOAuth2Client tries again, without limit"),
        TokenFault("503, Retry-After in seconds", .status(503, fields: [("Retry-After", "1")]), .status(503)),
        TokenFault(
            "503, Retry-After a date",
            .status(
                503,
                fields: [
                    ("Date", "Sun, 06 Nov 1994 08:49:37 GMT"), ("Retry-After", "Sun, 06 Nov 1994 08:49:38 GMT"),
                ]), .status(503)),
        TokenFault("429", .status(429, fields: [("Retry-After", "1")]), .status(429)),
        TokenFault("400, empty", .status(400), .status(400)),
        TokenFault("401, empty", .status(401), .status(401)),
        TokenFault("403, empty", .status(403), .status(403)),
        TokenFault("404 with HTML", .html(404), .status(404)),
        TokenFault("302", .redirect(302, to: "/elsewhere"), .redirect(302)),
        TokenFault("307", .redirect(307, to: "/elsewhere"), .redirect(307)),
    ]

    private static let oauthErrors: [TokenFault] = [
        "invalid_request", "invalid_client", "invalid_grant", "unauthorized_client", "unsupported_grant_type",
        "invalid_scope", "server_error", "temporarily_unavailable", "tea_break",
    ].map { code in
        let fault = TokenEndpointFault.refused(OAuthError(status: 400, code: OAuthError.Code(rawValue: code)))
        let peers =
            switch code {
            case "invalid_client": "Heimdallr.swift forgets its tokens"
            case "invalid_grant": "AeroGear keeps them and asks in a loop"
            default: "NXOAuth2Client forgets its token"
            }
        return TokenFault("400 \(code)", .error(code), fault, peers: peers)
    }

    private static let badAnswers: [TokenFault] = [
        TokenFault(
            "200, empty", .status(200), .answer(.emptyBody), peers: "Envoy never asks again; Heimdallr.swift crashes"),
        TokenFault("200 with HTML", .html(200), .answer(.notJSON), peers: envoyMalformed),
        TokenFault("200, cut JSON", .json(#"{"access_token":"T3","tok"#), .answer(.notJSON), peers: envoyMalformed),
        TokenFault("200, an array", .json(#"["access_token","T3"]"#), .answer(.notAnObject), peers: envoyMalformed),
        TokenFault("200, a token that is an object", .json(#"{"access_token":{"a":1}}"#), .answer(.noAccessToken)),
        TokenFault("200, no token_type", .token("T3", type: nil), .answer(.noTokenType)),
        TokenFault(
            "200, token_type mac", .token("T3", type: "mac"), .answer(.unknownTokenType("mac")),
            peers: "Heimdallr.swift sends `mac T3`"),
        TokenFault("200, a token with a line end", .token(#"T3\r\nX: y"#), .answer(.badAccessToken)),
        TokenFault(
            "200, expires_in 0", .token("T3", expiresIn: "0"), .answer(.alreadyExpired),
            peers: "Envoy asks 20,000 times in 4 s"),
        TokenFault("200, expires_in negative", .token("T3", expiresIn: "-5"), .answer(.alreadyExpired)),
    ]

    private static let brokenConnections: [TokenFault] = [
        TokenFault("1 GiB", TokenEndpointAnswer(manner: .flood(1 << 30)), .network(.bodyTooLarge)),
        TokenFault(
            "a body that drips for ever",
            TokenEndpointAnswer(body: String(repeating: " ", count: 10_000), manner: .drip(.milliseconds(20))),
            .network(.timeout)),
        TokenFault("silence", .silence, .network(.timeout), peers: envoyDown),
        TokenFault("reset", .reset, .network(.cut), peers: envoyDown),
        TokenFault("closed without an answer", .close, .network(.cut), peers: envoyDown),
        TokenFault(
            "cut in the body", TokenEndpointAnswer(body: #"{"access_token":"T3"}"#, manner: .cut(after: 9)),
            .network(.cut)),
    ]
}

/// Observations of one fault.
struct TokenFaultReport: Sendable {
    var fault: TokenFault
    /// Statuses before there was a token.
    var cold: Set<Int> = []
    /// Statuses once the token had expired.
    var whileDown: Set<Int> = []
    /// A request that could have waited for the next attempt did not, and was told when to come back.
    var isRefusedAtOnce = false
    /// The last error, as the status names it.
    var named: TokenEndpointFault?
    /// Requests that should not have reached the upstream.
    var badTokens: [String] = []
    var tokenRequests = 0
    var mostTokenRequests = 0
    var failureEvents = 0
    var failuresCounted = 0
    /// From when the next attempt was due until a request got through.
    var recovery = Duration.zero

    static func table(_ rows: [TokenFaultReport]) -> String {
        let head = [
            "fault", "others", "no token", "expired", "at once", "asked", "bad tokens sent", "recovered",
        ]
        let cells = rows.map { row in
            [
                row.fault.name, row.fault.peers, statuses(row.cold), statuses(row.whileDown),
                row.isRefusedAtOnce ? "yes" : "NO", "\(row.tokenRequests) of \(row.mostTokenRequests)",
                "\(row.badTokens.count)", "\(Int(row.recovery / .milliseconds(1))) ms after due",
            ]
        }
        let widths = head.indices.map { column in ([head] + cells).map { $0[column].count }.max() ?? 0 }
        let lines = ([head, widths.map { String(repeating: "-", count: $0) }] + cells).map { line in
            let padded = zip(line, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }
            return "| \(padded.joined(separator: " | ")) |"
        }
        return lines.joined(separator: "\n")
    }

    private static func statuses(_ set: Set<Int>) -> String {
        set.sorted().map(String.init).joined(separator: ", ")
    }
}
