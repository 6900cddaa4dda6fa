import Foundation
import TestSupport

/// A proxy whose clients sign in at django-oauth-toolkit.
struct LoginProxy {
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
        let more = [
            more, store.map { "store: {kind: file, directory: \($0), key: {file: FOLDER/key}}" } ?? "",
        ]
        proxy = try await RunningProxy(
            ProxyConfiguration(
                admin: "listen: 127.0.0.1:\(adminPort)",
                clients: [
                    ProxyConfiguration.client(
                        tokenEndpoint: nil,
                        "issuer: \(server.issuer)\nrevocation_endpoint: \(server.url)/o/revoke_token/\n" + client)
                ], upstreams: [ProxyConfiguration.upstream(url: server.url)], more: more.joined(separator: "\n"),
                files: [
                    "key": Data(repeating: 7, count: 32).base64EncodedString(),
                    "secret": DjangoOAuthToolkit.browser.secret,
                ]), environment: environment)
        let administration = try await proxy.administration()
        admin = "http://\(administration.address)"
        socket = administration.socket
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
