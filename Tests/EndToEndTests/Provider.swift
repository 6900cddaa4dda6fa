import Foundation
import Synchronization
import TestSupport

/// A provider of docs/providers.md as public reports describe it. The next provider is a row.
struct Provider: Sendable {
    enum Way: Sendable { case browser, device, nobody }
    typealias Answer = TokenEndpointAnswer

    /// The heading of its part of the page.
    let heading: String
    let way: Way
    /// The answer with token number `n`, `T1` first, and with the refresh token `R1`, if the server issues one.
    let token: @Sendable (_ n: Int, Form) -> Answer
    /// The answer to a request that this server does not take; `nil`: it takes any.
    var objection: @Sendable (Form) -> Answer? = { _ in nil }
    /// The answer to a dead refresh token; `nil`: the server issues none.
    var dead: Answer?
    /// Words of `dead` that the operator has to see.
    var words = ""
    /// The API's answer to a token that ended.
    var refusal = Answer(401, fields: [("WWW-Authenticate", "Bearer")])
    var scheme = "Bearer"

    /// Parameters of a form, decoded.
    struct Form: Sendable {
        let values: [String: String]

        init(_ text: String) {
            let pairs = text.split(separator: "&").map { pair in
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map {
                    $0.replacing("+", with: " ").removingPercentEncoding ?? String($0)
                }
                return (parts[0], parts.count == 2 ? parts[1] : "")
            }
            values = Dictionary(pairs) { "\($0)\n\($1)" }
        }

        subscript(_ name: String) -> String? { values[name] }
    }
}

/// A provider and an API with its tokens, at one address, and a proxy with the page's own configuration.
struct PlayedProvider {
    private struct State: Sendable {
        var issued = 0
        /// The first token that the API takes.
        var least = 1
        var isDead = false
        var forms: [Provider.Form] = []
        var tokens: [String] = []
        var hooks: [String] = []
    }

    let proxy: RunningProxy
    /// Host of the page's upstream.
    let host: String
    private let client: String
    private let provider: Provider
    private let world: RecordingOrigin
    private let state: Shared

    private final class Shared: Sendable {
        let value = Mutex(State())
    }

    init(_ provider: Provider) async throws {
        self.provider = provider
        let page = try Self.yaml(of: provider.heading)
        let paths = Self.paths(in: page)
        let state = Shared()
        self.state = state
        world = try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let path = String(request.target.prefix { $0 != "?" })
            let answer =
                if path == "/told" {
                    Self.noted(request.text, state)
                } else if path == paths["token"] {
                    Self.answer(to: Provider.Form(request.text), provider, state)
                } else if path == paths["device"] {
                    Provider.Answer.json(
                        #"{"device_code":"D","user_code":"U","verification_uri":"https://x.example","interval":1}"#)
                } else {
                    Self.answer(toAPI: request.field("Authorization") ?? "", provider, state)
                }
            try exchange.respond(answer.status, fields: answer.fields, body: answer.body)
        }
        host = page.firstMatch(of: /- host: (\S+)/).map { String($0.1) } ?? ""
        client = page.firstMatch(of: /client: (\S+)/).map { String($0.1) } ?? ""
        let key = try await ForeignKeys.make("rsa2048")
        proxy = try await RunningProxy(
            Self.played(page, at: world.url),
            files: [
                "secret": "provider-secret", "key.pem": key,
                "store.key": Data(repeating: 7, count: 32).base64EncodedString(),
            ])
    }

    // MARK: The page

    private static func yaml(of heading: String) throws -> String {
        let page = try String(contentsOfFile: Repository.root + "/docs/providers.md", encoding: .utf8)
        guard let part = page.split(separator: "\n## ").first(where: { $0.hasPrefix(heading + "\n") }),
            let block = part.split(separator: "```yaml\n").dropFirst().first?.split(separator: "```").first
        else { throw TestFailure("docs/providers.md has no configuration under \(heading)") }
        return String(block)
    }

    private static func paths(in page: String) -> [String: String] {
        let found = page.matches(of: /\b(device_authorization|token)_endpoint: https:\/\/[^\/\s]+(\/[^\s?]*)/)
        return Dictionary(found.map { ($0.1 == "token" ? "token" : "device", String($0.2)) }) { first, _ in first }
    }

    /// The page's configuration with loopback addresses.
    private static func played(_ page: String, at url: String) -> String {
        let text = page.replacing(/_endpoint: https:\/\/[^\/\s]+/) { _ in "_endpoint: \(url)" }
            .replacing(/\n    client_id:/) { _ in "\n    allow_plaintext: true\n    client_id:" }
            .replacing(/- host: (\S+)/) { "- host: \($0.1)\n    url: \(url)\n    allow_plaintext: true" }
            .replacing(/\n    redirect_uri: \S+/) { _ in "" }
            .replacing("admin: {}", with: "admin: {listen: \"127.0.0.1:0\", socket: FOLDER/admin.sock}")
        let hooks = page.contains("admin:") ? "hooks: {webhook: \"\(url)/told\", allow_plaintext: true}\n" : ""
        return "proxy: {listen: \"127.0.0.1:0\"}\n" + hooks + text
    }

    // MARK: The server

    private static func noted(_ hook: String, _ state: Shared) -> Provider.Answer {
        state.value.withLock { $0.hooks.append(hook) }
        return .status(204)
    }

    private static func answer(to form: Provider.Form, _ provider: Provider, _ state: Shared) -> Provider.Answer {
        state.value.withLock { state in
            state.forms.append(form)
            if let objection = provider.objection(form) { return objection }
            if state.isDead, form["grant_type"] == "refresh_token", let dead = provider.dead { return dead }
            state.issued += 1
            return provider.token(state.issued, form)
        }
    }

    private static func answer(toAPI field: String, _ provider: Provider, _ state: Shared) -> Provider.Answer {
        state.value.withLock { state in
            state.tokens.append(field)
            let prefix = "\(provider.scheme) T"
            guard field.hasPrefix(prefix), let number = Int(field.dropFirst(prefix.count)), number >= state.least else {
                return provider.refusal
            }
            return .json("{}")
        }
    }

    /// Token requests so far.
    var forms: [Provider.Form] { state.value.withLock { $0.forms } }
    /// `Authorization` of the requests to the API so far.
    var tokens: [String] { state.value.withLock { $0.tokens } }
    /// Events of the webhook so far.
    var hooks: [String] { state.value.withLock { $0.hooks } }
    var issued: Int { state.value.withLock { $0.issued } }

    /// From now on the API refuses the tokens so far.
    func endTokens() { state.value.withLock { $0.least = $0.issued + 1 } }
    func endRefreshToken(_ isDead: Bool = true) { state.value.withLock { $0.isDead = isDead } }

    // MARK: The proxy

    func get() async throws -> RawResponse { try await proxy.get("http://\(host)/x") }

    func command(_ words: String...) async throws -> ChildProcess {
        try await RunningProxy.run(words + ["--socket", proxy.directory.path(of: "admin.sock"), client])
    }

    func status() async throws -> String {
        try await RunningProxy.run(["status", "--socket", proxy.directory.path(of: "admin.sock")]).transcript
    }

    /// A person signs in.
    /// - Returns: the query of the authorization request.
    @discardableResult
    func signIn() async throws -> Provider.Form {
        switch provider.way {
        case .nobody: return Provider.Form("")
        case .device:
            let command = try await command("login")
            guard command.ending == .exited(0) else { throw TestFailure(command.transcript) }
            return Provider.Form("")
        case .browser:
            let admin = try await proxy.administration()
            let out = try await visit("/login/\(client)", at: admin)
            guard let location = out.field("Location"),
                let cookie = out.field("Set-Cookie")?.split(separator: ";").first
            else { throw TestFailure("no way to sign in: \(out.text)\n\(proxy.log)") }
            let query = Provider.Form(String(location.split(separator: "?", maxSplits: 1).last ?? ""))
            let back = "/callback?code=C&state=\(query["state"] ?? "")"
            let done = try await visit(back, at: admin, cookie: String(cookie))
            guard done.status == 200 else { throw TestFailure("\(done.text)\n\(proxy.log)") }
            return query
        }
    }

    private func visit(
        _ target: String, at admin: (address: String, port: UInt16, socket: String), cookie: String? = nil
    ) async throws -> RawResponse {
        let cookie = cookie.map { "Cookie: \($0)\r\n" } ?? ""
        return try await RawClient.exchange(
            port: admin.port, "GET \(target) HTTP/1.1\r\nHost: \(admin.address)\r\n\(cookie)\r\n")
    }
}
