import Foundation
import TestSupport

extension RunningProxy {
    /// A proxy with one upstream, `mcp.test`, whose client is `auto`.
    /// - Parameters:
    ///   - url: of the upstream.
    ///   - auto: keys of `auto`.
    ///   - networks: `private_networks`, where the documents of the API may lead.
    ///   - more: further lines; further upstreams first.
    static func auto(
        _ url: String, auto: String = "", adminPort: UInt16 = 0, networks: String = "[127.0.0.0/8]", more: String = "",
        environment: [String: String?] = [:]
    ) async throws -> RunningProxy {
        let auto = auto.isEmpty ? "" : ", auto: {\(auto)}"
        return try await RunningProxy(
            """
            proxy:
              listen: 127.0.0.1:0
              private_networks: \(networks)
            admin:
              listen: 127.0.0.1:\(adminPort)
              socket: FOLDER/admin.sock
            upstreams:
              - {host: mcp.test, url: "\(url)", client: auto, allow_plaintext: true\(auto)}
            \(more)
            """, files: ["key": Data(repeating: 7, count: 32).base64EncodedString()], environment: environment)
    }
}

/// A browser without scripts that follows every redirect and keeps its cookies, at the page and at a server.
struct PlainBrowser {
    private let folder: TemporaryDirectory
    private var jar: String { "\(folder.path)/cookies" }

    init() throws { folder = try TemporaryDirectory() }

    func open(_ url: String) async throws -> String { try await run([url]) }

    /// Sends a form of a page at `origin`.
    func send(_ form: [(String, String)], to url: String, from origin: String? = nil) async throws -> String {
        let fields = origin.map { ["-H", "Origin: \($0)", "-H", "Sec-Fetch-Site: same-origin"] } ?? []
        return try await run(fields + form.flatMap { ["--data-urlencode", "\($0.0)=\($0.1)"] } + [url])
    }

    /// Opens the page before a sign-in of `client: auto`, and presses Continue.
    func signIn(_ host: String, at admin: String) async throws -> String {
        try await press("go", on: try await open("\(admin)/login/\(host)"), host, at: admin)
    }

    /// Sends the form of a page before a sign-in.
    /// - Parameters:
    ///   - action: value of the form's `do`.
    ///   - typed: further fields.
    /// - Returns: the last page; the given one if it has no such form.
    func press(
        _ action: String, on page: String, _ host: String, at admin: String, typing typed: [(String, String)] = []
    ) async throws -> String {
        for form in page.matches(of: /<form.*?<\/form>/.dotMatchesNewlines()) {
            let fields = form.output.matches(of: /name="(csrf|offer|ticket|do)" value="([^"]*)"/).map {
                (String($0.output.1), String($0.output.2))
            }
            guard fields.contains(where: { $0 == ("do", action) }) else { continue }
            return try await send(fields + typed, to: "\(admin)/client/\(host)", from: admin)
        }
        return page
    }

    private func run(_ arguments: [String]) async throws -> String {
        let process = try await ChildProcess.run(
            ["curl", "-s", "-L", "--noproxy", "*", "-b", jar, "-c", jar] + arguments)
        guard process.ending == .exited(0) else { throw TestFailure(process.transcript) }
        return process.output
    }
}

/// An API whose metadata names an issuer, and which takes any token.
func publishingAPI(
    naming issuer: String, challenge: @escaping @Sendable (String) -> String = { "Bearer resource_metadata=\"\($0)\"" },
    more: String = #","scopes_supported":["read"]"#
) throws -> RecordingOrigin {
    try RecordingOrigin { exchange in
        let request = try exchange.readBody()
        let address = "http://\(request.field("Host") ?? "")"
        if request.target.hasPrefix("/.well-known/") {
            return try exchange.respond(
                200, fields: [("Content-Type", "application/json")],
                body: #"{"resource":"\#(address)","authorization_servers":["\#(issuer)"]\#(more)}"#)
        }
        guard request.field("Authorization")?.hasPrefix("Bearer ") == true else {
            let field = ("WWW-Authenticate", challenge("\(address)/.well-known/oauth-protected-resource"))
            return try exchange.respond(401, fields: [field], body: "")
        }
        try exchange.respond(200, fields: [], body: "welcome")
    }
}
