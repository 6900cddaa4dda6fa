/// A configuration of the executable: defaults for most tests, and a test's own lines.
public struct ProxyConfiguration: Sendable {
    /// YAML. `FOLDER` stands for the folder of `files`.
    public var text: String
    /// Contents of files by name: `secret`, which is the client's, and others.
    public var files: [String: String]

    /// Default content of the file `secret`.
    public static let secret = "client-secret-9876543210"

    /// - Parameters:
    ///   - listen: the port of `proxy.listen`, on 127.0.0.1; 0 for a free one.
    ///   - proxy: further lines of the section `proxy`; a `listen` among them replaces the default.
    ///   - admin: further lines of the section `admin`; `nil` for no section. By default it listens at a free port and
    ///     at the socket `FOLDER/admin.sock`.
    ///   - clients: entries made by `client`.
    ///   - upstreams: entries made by `upstream`.
    ///   - more: further sections.
    public init(
        listen: UInt16 = 0, proxy: String = "", admin: String? = nil, clients: [String], upstreams: [String],
        more: String = "", files: [String: String] = [:]
    ) {
        let adminSection = admin.map {
            "admin:\n"
                + ($0.contains("listen:") ? "" : "  listen: 127.0.0.1:0\n")
                + ($0.contains("socket:") ? "" : "  socket: FOLDER/admin.sock\n") + $0.indented(2)
        }
        text = """
            proxy:
            \(proxy.contains("listen:") ? "" : "  listen: 127.0.0.1:\(listen)")
            \(proxy.indented(2))
            \(adminSection ?? "")
            clients:
            \(clients.joined(separator: "\n"))
            upstreams:
            \(upstreams.joined(separator: "\n"))
            \(more)
            """
        self.files = files.merging(["secret": Self.secret]) { given, _ in given }
    }

    /// Makes a configuration with one client, `api`.
    /// - Parameter client: further lines of the client.
    public init(
        listen: UInt16 = 0, tokenEndpoint: String, client: String = "", proxy: String = "", admin: String? = nil,
        upstreams: String..., more: String = "", files: [String: String] = [:]
    ) {
        self.init(
            listen: listen, proxy: proxy, admin: admin,
            clients: [Self.client(tokenEndpoint: tokenEndpoint, client)], upstreams: upstreams, more: more,
            files: files)
    }

    /// Returns one entry of `clients`.
    /// - Parameters:
    ///   - tokenEndpoint: `nil` if `lines` have the endpoint or the issuer.
    ///   - lines: further lines; a `client_id` among them replaces the default one and its secret.
    public static func client(_ name: String = "api", tokenEndpoint: String?, _ lines: String = "") -> String {
        var text = "  \(name):\n    allow_plaintext: true\n"
        if let tokenEndpoint { text += "    token_endpoint: \(tokenEndpoint)\n" }
        if !lines.contains("client_id:") {
            text += "    client_id: the-tests\n    client_secret: {file: FOLDER/secret}\n"
        }
        return text + lines.indented(4)
    }

    /// Returns one entry of `upstreams`, which uses the client `api`.
    /// - Parameter lines: further lines of the entry.
    public static func upstream(_ host: String = "api.test", url: String, _ lines: String = "") -> String {
        var text = "  - host: \(host)\n    url: \(url)\n    client: api\n"
        if url.hasPrefix("http://") { text += "    allow_plaintext: true\n" }
        return text + lines.indented(4)
    }
}

extension TokenEndpoint {
    /// The token that `plain` issues.
    public static let plainToken = "the-token-0123456789"

    /// Makes an endpoint that always issues the same token, for tests of something else.
    public static func plain() throws -> TokenEndpoint { try TokenEndpoint([.token(plainToken)]) }
}
