import Foundation

/// django-oauth-toolkit under gunicorn on a free loopback port: a third-party authorization server, with a protected
/// API at `/api/`. See `Fixtures/django_oauth_toolkit/project.py`.
public final class DjangoOAuthToolkit: Sendable {
    public let port: UInt16
    public var url: String { "http://127.0.0.1:\(port)" }
    public var tokenEndpoint: String { "\(url)/o/token/" }

    /// Client credentials, confidential. The secret has characters that `basic_encoding` concerns.
    public static let machine = (id: "machine", secret: "machine: a secret/with +%& signs")
    /// Password and refresh grants, confidential.
    public static let person = (id: "person", secret: "person-secret")
    /// Password and refresh grants, without a secret.
    public static let publicClient = "public"
    /// Authorization code, confidential. Redirects: `http://127.0.0.1/callback`, any port; `com.example.app:/oauth`.
    public static let browser = (id: "browser", secret: "browser-secret")
    /// Authorization code without a secret.
    public static let app = "app"
    /// The implicit grant.
    public static let old = "old"
    /// The device grant, without a secret.
    public static let television = "television"
    public static let user = (name: "ada", password: "ada's password", email: "ada@example.com")

    /// Issuer, whose endpoints OpenID Connect Discovery finds.
    public var issuer: String { "\(url)/o" }
    public var authorizationEndpoint: String { "\(url)/o/authorize/" }
    public var deviceAuthorizationEndpoint: String { "\(url)/o/device-authorization/" }

    /// Numbers of rows in the server's database.
    public struct Tokens: Decodable, Sendable {
        public var access: Int
        public var refresh: Int
        public var refreshRevoked: Int
    }

    private let child: ChildProcess
    private let directory: TemporaryDirectory

    /// - Parameter accessTokenSeconds: value of `expires_in`.
    /// - Throws: `TestFailure` with the output when the start fails.
    public init(accessTokenSeconds: Int = 300) async throws {
        directory = try TemporaryDirectory()
        for (name, bytes) in try await Self.prepared.value { try directory.write(bytes, to: name) }
        var environment = Self.environment(directory)
        environment["ACCESS_TOKEN_SECONDS"] = "\(accessTokenSeconds)"
        // gunicorn logs its port.
        let child = try ChildProcess(
            [
                try Repository.python("gunicorn"), "project:application", "--bind", "127.0.0.1:0", "--workers", "1",
                "--threads", "8", "--keep-alive", "30", "--access-logfile", "-", "--no-control-socket",
            ], environment: environment, directory: directory.path)
        self.child = child
        port = try await eventually("gunicorn's port", within: .seconds(60)) {
            if child.ending != nil { throw TestFailure(child.transcript) }
            guard let mark = child.errors.range(of: "Listening at: http://127.0.0.1:") else { return nil }
            let digits = child.errors[mark.upperBound...].prefix { $0.isNumber }
            return child.errors.contains("Booting worker") ? UInt16(digits) : nil
        }
    }

    deinit { child.kill() }

    private static let project = Repository.fixture("django_oauth_toolkit")

    private static func environment(_ folder: TemporaryDirectory) -> [String: String?] {
        [
            "FOLDER": folder.path, "PYTHONPATH": project, "PYTHONDONTWRITEBYTECODE": "1", "http_proxy": nil,
            "https_proxy": nil,
        ]
    }

    /// Files with the user, the clients and the signing key. All servers share them, because making them takes seconds.
    private static let prepared = Task {
        let folder = try TemporaryDirectory()
        try await ChildProcess.output(
            of: [try Repository.python(), "\(project)/project.py"], environment: environment(folder))
        return try ["database.sqlite3", "key.pem"].map {
            ($0, [UInt8](try Data(contentsOf: URL(fileURLWithPath: folder.path(of: $0)))))
        }
    }

    /// Token requests answered so far, by gunicorn's access log.
    public var tokenRequests: Int {
        child.output.split(separator: "\n").filter { $0.contains("\"POST /o/token/ ") }.count
    }

    /// The server's output, for a failure's message.
    public var log: String { child.transcript }

    public func tokens() async throws -> Tokens {
        let response = try await RawClient.exchange(
            port: port, "GET /test/tokens HTTP/1.1\r\nHost: \(url.dropFirst(7))\r\n\r\n")
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Tokens.self, from: Data(response.body))
    }

    /// Makes every access token invalid at once. Refresh tokens stay valid.
    public func forgetAccessTokens() async throws { try await administer("forget") }

    /// Revokes every refresh token, and the access tokens issued with them.
    public func revokeRefreshTokens() async throws { try await administer("revoke") }

    private func administer(_ action: String) async throws {
        let response = try await RawClient.exchange(
            port: port, "POST /test/\(action) HTTP/1.1\r\nHost: \(url.dropFirst(7))\r\nContent-Length: 0\r\n\r\n")
        guard response.status == 204 else { throw TestFailure("\(action): \(response.status)") }
    }

    /// Refreshes from the test itself, and returns the server's status: 400 for a spent token.
    public func spend(_ refreshToken: String) async throws -> Int {
        let body = "grant_type=refresh_token&refresh_token=\(refreshToken)"
        let credentials = Data("\(Self.person.id):\(Self.person.secret)".utf8).base64EncodedString()
        return try await RawClient.exchange(
            port: port,
            "POST /o/token/ HTTP/1.1\r\nHost: \(url.dropFirst(7))\r\nAuthorization: Basic \(credentials)\r\n"
                + "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)"
        ).status
    }

    /// Returns a refresh token from a password grant, which the test requests with curl.
    public func refreshToken() async throws -> String {
        struct Answer: Decodable { var refreshToken: String }
        let answer = try await ChildProcess.output(of: [
            "curl", "--silent", "--show-error", "--fail", "--noproxy", "*", "--user",
            "\(Self.person.id):\(Self.person.secret)", "--data-urlencode", "grant_type=password", "--data-urlencode",
            "username=\(Self.user.name)", "--data-urlencode", "password=\(Self.user.password)", tokenEndpoint,
        ])
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        return try decoder.decode(Answer.self, from: Data(answer.utf8)).refreshToken
    }

    /// Logs the user in at the server's pages, and allows or denies the request.
    /// - Parameter address: the authorization URL of a client.
    /// - Returns: the address to which the server redirects the browser.
    public func authorize(_ address: String, allowing: Bool = true) async throws -> String {
        try await person(["authorize", address] + (allowing ? [] : ["deny"]))
    }

    /// Logs the user in on another device, enters the code, and allows or denies the request.
    public func authorizeDevice(at address: String, code: String, allowing: Bool = true) async throws {
        let page = try await person(["device", address, code] + (allowing ? [] : ["deny"]))
        guard page.hasPrefix("200 ") else { throw TestFailure(page) }
    }

    private func person(_ arguments: [String]) async throws -> String {
        let script = "\(Repository.fixture("django_oauth_toolkit"))/person.py"
        return try await ChildProcess.output(of: [try Repository.python(), script] + arguments)
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }

    /// Stops the server and breaks its connections.
    public func stop() async throws { try await child.stop() }
}
