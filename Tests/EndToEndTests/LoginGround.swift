import Foundation
import TestSupport

/// A proxy whose clients somebody signs in at django-oauth-toolkit.
struct LoginRig {
    let server: DjangoOAuthToolkit
    let proxy: RunningProxy
    /// `http://127.0.0.1:PORT` of the admin port.
    let admin: String
    let socket: String

    /// - Parameters:
    ///   - client: of the client `api`, beside its server.
    ///   - store: a folder that outlives the proxy.
    init(
        _ server: DjangoOAuthToolkit, client: String, adminPort: UInt16 = 0, store: String? = nil, more: String = "",
        environment: [String: String?] = [:]
    ) async throws {
        self.server = server
        let keeping = store.map { "store: {kind: file, directory: \($0), key: {file: FOLDER/key}}" } ?? ""
        proxy = try await RunningProxy(
            """
            proxy: {listen: "127.0.0.1:0"}
            admin: {listen: "127.0.0.1:\(adminPort)", socket: FOLDER/admin.sock}
            \(keeping)
            clients:
              api:
                issuer: \(server.issuer)
                revocation_endpoint: \(server.url)/o/revoke_token/
                allow_plaintext: true
            \(client.indented(4))
            upstreams:
              - {host: api.test, url: "\(server.url)", client: api, allow_plaintext: true}
            \(more)
            """,
            files: [
                "key": Data(repeating: 7, count: 32).base64EncodedString(), "secret": DjangoOAuthToolkit.browser.secret,
            ], environment: environment)
        let proxy = proxy
        let line = try await eventually("the administration listens") {
            proxy.log.split(separator: "\n").first { $0.contains(" info administration ") }
        }
        func word(_ name: String) -> String {
            let word = line.split(separator: " ").first { $0.hasPrefix("\(name)=") } ?? ""
            return String(word.dropFirst(name.count + 1))
        }
        admin = "http://\(word("address"))"
        socket = word("socket")
    }

    static let browser = """
        grant_type: authorization_code
        client_id: \(DjangoOAuthToolkit.browser.id)
        client_secret: {file: FOLDER/secret}
        scope: [openid, read]
        """
    /// The server's metadata does not name the endpoint.
    static func television(_ server: DjangoOAuthToolkit) -> String {
        """
        grant_type: device_code
        device_authorization_endpoint: \(server.deviceAuthorizationEndpoint)
        client_id: \(DjangoOAuthToolkit.television)
        scope: [read]
        """
    }
    static let app = """
        grant_type: authorization_code
        client_id: \(DjangoOAuthToolkit.app)
        redirect_uri: com.example.app:/oauth
        scope: [read]
        """

    /// `heimdallr-proxy login api`, running.
    func login(_ arguments: String..., input: [UInt8] = []) throws -> ChildProcess {
        try ChildProcess(
            [try Repository.executable(), "login", "--socket", socket] + arguments + ["api"],
            environment: ["DISPLAY": nil, "WAYLAND_DISPLAY": nil], input: input)
    }

    /// One request to the admin port, as a browser without Fetch Metadata sends it.
    func get(_ url: String, cookie: String? = nil) async throws -> RawResponse {
        let target = url.hasPrefix(admin) ? String(url.dropFirst(admin.count)) : url
        let cookie = cookie.map { "Cookie: \($0)\r\n" } ?? ""
        return try await RawClient.exchange(
            port: UInt16(admin.split(separator: ":").last ?? "") ?? 0,
            "GET \(target) HTTP/1.1\r\nHost: \(admin.dropFirst("http://".count))\r\n\(cookie)\r\n")
    }

    func status() async throws -> String {
        try await RunningProxy.run(["status", "--socket", socket]).output
    }
}

/// A line of standard error that is an address, once it is there.
func address(in process: ChildProcess) async throws -> String {
    try await eventually("an address") {
        if process.ending != nil { throw TestFailure(process.transcript) }
        return process.errors.split(separator: "\n").first { $0.hasPrefix("    http") }.map { String($0.dropFirst(4)) }
    }
}

/// A person at headless Chromium: see Fixtures/sign_in.py. One at a time has a profile.
struct Person {
    let folder = try? TemporaryDirectory()

    func does(_ arguments: [String]) throws -> ChildProcess {
        guard let folder else { throw TestFailure("no folder for the browser's profile") }
        let script = "\(Repository.root)/Tests/EndToEndTests/Fixtures/sign_in.py"
        return try ChildProcess(
            [try Repository.python(), script, "\(folder.path)/profile", folder.path] + arguments,
            environment: ["HOME": folder.path, "http_proxy": nil, "https_proxy": nil])
    }

    /// To its end; nothing that the browser itself complains of, and nothing asked of anybody but these two.
    func done(_ arguments: [String], with rig: LoginRig) async throws -> [String] {
        let process = try does(arguments)
        return try await Self.judged(process, rig)
    }

    static func judged(_ process: ChildProcess, _ rig: LoginRig) async throws -> [String] {
        guard try await process.ended(within: .seconds(120)) == .exited(0) else {
            throw TestFailure("\(process.transcript)\n\(rig.proxy.log)\n\(rig.server.log)")
        }
        let lines = process.output.split(separator: "\n").map(String.init)
        for line in lines {
            if line.hasPrefix("asked "), !line.hasPrefix("asked \(rig.admin)/"),
                !line.hasPrefix("asked \(rig.server.url)/")
            {
                throw TestFailure("a page asked elsewhere: \(line)")
            }
            if line.hasPrefix("complaint "), !line.contains("\(rig.server.url)/favicon.ico") { throw TestFailure(line) }
        }
        return lines
    }
}
