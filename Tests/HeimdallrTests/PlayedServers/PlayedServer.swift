import TestSupport
import Testing

@testable import Heimdallr

/// An answer of a token endpoint as a public report describes it, and its meaning. The next odd server is a row.
struct PlayedServer: Sendable, CustomTestStringConvertible {
    enum Meaning: Sendable {
        /// The answer has this access token.
        case token(String)
        /// The refresh token is refused, with these words.
        case refused(String)
        /// The refresh token is refused for good.
        case dead
        /// The client's own fault, with these words.
        case client(String)
        /// A fault that passes, with these words.
        case passing(String)
        /// No answer of the server, with these words.
        case other(String)
    }

    let name: String
    let answer: TokenEndpointAnswer
    let meaning: Meaning

    var testDescription: String { name }

    init(_ name: String, _ answer: TokenEndpointAnswer, _ meaning: Meaning) {
        self.name = name
        self.answer = answer
        self.meaning = meaning
    }

    static func form(_ text: String, status: Int = 200) -> TokenEndpointAnswer {
        TokenEndpointAnswer(status, fields: [("Content-Type", "application/x-www-form-urlencoded")], body: text)
    }

    static func limited(_ status: Int, _ field: (String, String), _ body: String) -> TokenEndpointAnswer {
        TokenEndpointAnswer(status, fields: [("Content-Type", "application/json"), field], body: body)
    }

    static let all: [PlayedServer] = refusals + limits + words + formats + between

    private static let refusals: [PlayedServer] = [
        .init(
            "GitHub, a dead refresh token in a form",
            form("error=bad_refresh_token&error_description=The+refresh+token+passed+is+incorrect+or+expired."),
            .refused("The refresh token passed is incorrect or expired.")),
        .init(
            "GitHub, the same as JSON",
            .json(#"{"error":"bad_refresh_token","error_description":"incorrect or expired"}"#),
            .refused("bad_refresh_token")),
        .init(
            "GitHub, a wrong secret in a 200",
            .json(#"{"error":"incorrect_client_credentials","error_description":"not correct"}"#),
            .client("incorrect_client_credentials")),
        .init(
            "Slack, a dead refresh token", .json(#"{"ok":false,"error":"invalid_refresh_token"}"#),
            .refused("invalid_refresh_token")),
        .init(
            "Slack, a wrong secret", .json(#"{"ok":false,"error":"bad_client_secret"}"#), .client("bad_client_secret")),
        .init("Zoho, a dead token", .json(#"{"error":"invalid_code"}"#), .refused("invalid_code")),
        .init(
            "Entra ID, a refresh without scope",
            .json(
                #"{"error":"invalid_request","error_description":"AADSTS900144: The request body must contain 'scope'."}"#,
                status: 400), .refused("AADSTS900144")),
        .init("Mailchimp, for ever", .token("T1", expiresIn: "0"), .other("set token_lifetime: off")),
        .init("invalid_grant in a 200", .json(#"{"error":"invalid_grant"}"#), .dead),
        .init(
            "a word of its own with 403", .json(#"{"error":"token_revoked"}"#, status: 403), .refused("token_revoked")),
        .init("a word of its own with 404", .json(#"{"error":"session_not_found"}"#, status: 404), .refused("session")),
        .init(
            "a word of its own with 500", .json(#"{"error":"token_revoked"}"#, status: 500), .passing("token_revoked")),
    ]

    private static let limits: [PlayedServer] = [
        .init(
            "Zoho, too many requests",
            .json(
                #"{"error":"Access Denied","error_description":"You have made too many requests continuously."}"#,
                status: 400), .passing("too many requests")),
        .init("Slack, a rate limit in a 200", .json(#"{"ok":false,"error":"ratelimited"}"#), .passing("ratelimited")),
        .init("429 with invalid_grant", .json(#"{"error":"invalid_grant"}"#, status: 429), .passing("429")),
        .init(
            "403 with Retry-After", limited(403, ("Retry-After", "7"), #"{"error":"forbidden"}"#), .passing("403")),
        .init(
            "Okta, X-Rate-Limit fields",
            limited(403, ("X-Rate-Limit-Remaining", "0"), #"{"errorCode":"E0000047"}"#), .passing("403")),
        .init(
            "the RateLimit field", limited(400, ("RateLimit", #""hour";r=0;t=30"#), #"{"error":"invalid_grant"}"#),
            .passing("400")),
        .init(
            "requests remain", limited(400, ("X-RateLimit-Remaining", "41"), #"{"error":"invalid_grant"}"#), .dead),
        .init("a throttled gateway", .json(#"{"message":"Request was throttled."}"#, status: 403), .passing("403")),
    ]

    private static let words: [PlayedServer] = [
        .init(
            "Okta",
            .json(#"{"errorCode":"invalid_client","errorSummary":"No client credentials found."}"#, status: 401),
            .client("No client credentials found.")),
        .init(
            "Google",
            .json(#"{"error":{"code":403,"message":"No access to it.","status":"PERMISSION_DENIED"}}"#, status: 403),
            .refused("PERMISSION_DENIED: No access to it.")),
        .init("a gateway's message", .json(#"{"message":"Missing key"}"#, status: 400), .refused("Missing key")),
        .init("msg", .json(#"{"code":1001,"msg":"bad app"}"#, status: 400), .refused("bad app")),
        .init("errors[].message", .json(#"{"errors":[{"message":"expired"}]}"#, status: 401), .refused("expired")),
        .init("errors[] of texts", .json(#"{"errors":["expired"]}"#, status: 401), .refused("expired")),
        .init(
            "RFC 9457", .json(#"{"type":"about:blank","title":"Bad","detail":"no scope"}"#, status: 400),
            .refused("no scope")),
    ]

    private static let formats: [PlayedServer] = [
        .init("a form with a token", form("access_token=T%31&scope=repo%2Cgist&token_type=bearer"), .token("T1")),
        .init("a form with `expires`", form("access_token=T1&token_type=bearer&expires=5184000\n"), .token("T1")),
        .init(
            "refresh_token: false", .json(#"{"access_token":"T1","token_type":"Bearer","refresh_token":false}"#),
            .token("T1")),
        .init(
            "a scope of the wrong type", .json(#"{"access_token":"T1","token_type":"Bearer","scope":7,"id_token":[]}"#),
            .token("T1")),
        .init("UTF-16", TokenEndpointAnswer(body: "{\u{0}}\u{0}"), .other("UTF-16")),
        .init("a broken form", form("access_token=T1%2&token_type=bearer"), .other("not valid JSON")),
    ]

    private static let between: [PlayedServer] = [
        .init("a firewall's page", .html(403), .other("a firewall or a web page")),
        .init("a captcha", .html(405), .other("a firewall or a web page")),
        .init("a captive portal", .html(200), .other("a web page")),
        .init("a page for a wrong address", .html(404), .other("404")),
    ]
}
