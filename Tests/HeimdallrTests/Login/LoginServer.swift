import Foundation
import Heimdallr
import Synchronization
import TestSupport

/// An authorization server whose every answer is a test's, good or hostile.
final class LoginServer: Sendable {
    struct Reply: Sendable {
        var status = 200
        var fields: [(String, String)] = [("Content-Type", "application/json")]
        var body = ""
        var delay = Duration.zero
        /// Number of superfluous bytes.
        var flood: Int?
        /// The connection ends without an answer.
        var closes = false

        static func json(_ body: String, status: Int = 200) -> Reply { Reply(status: status, body: body) }
    }

    private let table = ReplyTable()
    private let origin: RecordingOrigin

    var url: String { origin.url }
    let path: String
    var issuer: String { url + path }

    static let callback = "http://127.0.0.1:18081/callback"
    static let wellKnown = "/.well-known/oauth-authorization-server"

    /// - Parameter path: of the issuer.
    init(path: String = "") throws {
        self.path = path
        origin = try RecordingOrigin { [table] exchange in
            let request = try exchange.readBody()
            let reply = table.reply(to: String(request.target.prefix { $0 != "?" }))
            if reply.delay > .zero { exchange.pause(reply.delay) }
            if reply.closes { return exchange.close() }
            if let flood = reply.flood { return try exchange.flood(flood) }
            try exchange.respond(reply.status, fields: reply.fields, body: reply.body)
        }
        self[Self.wellKnown + path] = .json(metadata())
    }

    /// The reply to later requests for a path.
    subscript(_ path: String) -> Reply {
        get { table.reply(to: path) }
        set { table.set(path, newValue) }
    }

    /// - Parameter more: JSON members, replacing nothing.
    func metadata(issuer: String? = nil, more: String = "", leavingOut names: Set<String> = []) -> String {
        let members = [
            "token_endpoint": "token", "authorization_endpoint": "authorize?tenant=a", "jwks_uri": "keys",
            "device_authorization_endpoint": "device", "revocation_endpoint": "revoke",
        ].filter { !names.contains($0.key) }
        let endpoints = members.sorted { $0.key < $1.key }.map { "\"\($0.key)\":\"\(url)/\($0.value)\"" }
        let extra = more.isEmpty ? [] : [more]
        return "{" + (["\"issuer\":\"\(issuer ?? self.issuer)\""] + endpoints + extra).joined(separator: ",") + "}"
    }

    func giveToken(_ value: String = "T1", more: String = #""refresh_token":"R1""#) {
        self["/token"] = .json(#"{"access_token":"\#(value)","token_type":"Bearer","expires_in":3600,\#(more)}"#)
    }

    /// To one path, in order.
    func requests(_ path: String) -> [RecordedRequest] {
        origin.requests.filter { $0.target.prefix { $0 != "?" } == path && $0.isComplete }
    }

    var targets: [String] { origin.requests.map(\.target) }
    func stop() { origin.stop() }

    // MARK: Clients

    func client(
        _ method: LoginMethod = .browser, store: any OAuthAccessTokenStore = OAuthAccessTokenMemoryStore(),
        clock: HeimdallrClock = .system, secret: String? = nil,
        _ change: (inout HeimdallrConfiguration) -> Void = { _ in }
    ) throws -> Heimdallr {
        var configuration = HeimdallrConfiguration(issuer: issuer)
        configuration.allowPlaintext = true
        configuration.allowDeprecated = true
        change(&configuration)
        let credentials =
            secret.map { OAuthClientSecretCredentials(identifier: "app", secret: Secret($0)) }
            ?? OAuthClientSecretCredentials(identifier: "app")
        return try Heimdallr(
            name: "calendar", configuration: configuration, credentials: credentials, grant: InteractiveGrant(method),
            httpClient: LoopbackHTTPClient(), store: store, clock: clock)
    }

    /// The address that a server would send the browser back to.
    func answer(_ attempt: LoginAttempt, code: String = "C1", more: String = "") -> String {
        "\(Self.callback)?code=\(code)&state=\(attempt.state)\(more)"
    }

    /// The whole way.
    func logIn(_ client: Heimdallr, more: String = "") async throws {
        let attempt = try await client.beginLogin(redirectURI: Self.callback)
        try await client.finishLogin(attempt, redirectedTo: answer(attempt, more: more))
    }
}

private final class ReplyTable: Sendable {
    private let replies = Mutex<[String: LoginServer.Reply]>([:])

    func reply(to path: String) -> LoginServer.Reply {
        replies.withLock { $0[path] } ?? LoginServer.Reply(status: 404, body: "nothing here")
    }

    func set(_ path: String, _ reply: LoginServer.Reply) { replies.withLock { $0[path] = reply } }
}

/// A URL's query, decoded, as a server reads it.
struct ReadQuery {
    let pairs: [(name: String, value: String)]

    init(_ url: String) { self.init(query: url.split(separator: "?", maxSplits: 1).dropFirst().joined()) }

    init(query: String) {
        pairs = query.split(separator: "&").map { pair in
            let cut = pair.firstIndex(of: "=") ?? pair.endIndex
            func text(_ part: Substring) -> String {
                part.replacing("+", with: " ").removingPercentEncoding ?? String(part)
            }
            return (text(pair[..<cut]), text(pair[cut...].dropFirst()))
        }
    }

    /// Joined by a line end if repeated.
    subscript(_ name: String) -> String? {
        let values = pairs.filter { $0.name == name }.map(\.value)
        return values.isEmpty ? nil : values.joined(separator: "\n")
    }
}
