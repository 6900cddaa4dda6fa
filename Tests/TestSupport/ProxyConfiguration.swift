/// A configuration of the executable, made of what most tests want and the lines that differ.
public struct ProxyConfiguration: Sendable {
    /// YAML. `FOLDER` stands for the folder that `files` are in.
    public var text: String
    /// By name: `secret`, which is the client's, and further ones.
    public var files: [String: String]

    /// Default content of the file `secret`.
    public static let secret = "client-secret-9876543210"

    /// - Parameters:
    ///   - listen: the port of `proxy.listen`, on 127.0.0.1; 0 for a free one.
    ///   - proxy: further lines of the section `proxy`, `listen` too where it is another one.
    ///   - admin: further lines of the section `admin`, which listens at a free port and at the socket
    ///     `FOLDER/admin.sock` unless they say otherwise; `nil` for none.
    ///   - clients: as `client` makes them.
    ///   - upstreams: as `upstream` makes them.
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

    /// With one client, `api`.
    /// - Parameter client: its further lines.
    public init(
        listen: UInt16 = 0, tokenEndpoint: String, client: String = "", proxy: String = "", admin: String? = nil,
        upstreams: String..., more: String = "", files: [String: String] = [:]
    ) {
        self.init(
            listen: listen, proxy: proxy, admin: admin,
            clients: [Self.client(tokenEndpoint: tokenEndpoint, client)], upstreams: upstreams, more: more,
            files: files)
    }

    /// One entry of `clients`.
    /// - Parameters:
    ///   - tokenEndpoint: `nil` where `lines` say it, or the issuer.
    ///   - lines: further ones; a `client_id` among them stands for that of these tests and its secret.
    public static func client(_ name: String = "api", tokenEndpoint: String?, _ lines: String = "") -> String {
        var text = "  \(name):\n    allow_plaintext: true\n"
        if let tokenEndpoint { text += "    token_endpoint: \(tokenEndpoint)\n" }
        if !lines.contains("client_id:") {
            text += "    client_id: the-tests\n    client_secret: {file: FOLDER/secret}\n"
        }
        return text + lines.indented(4)
    }

    /// One entry of `upstreams`, signed by the client `api`.
    /// - Parameter lines: further ones.
    public static func upstream(_ host: String = "api.test", url: String, _ lines: String = "") -> String {
        var text = "  - host: \(host)\n    url: \(url)\n    client: api\n"
        if url.hasPrefix("http://") { text += "    allow_plaintext: true\n" }
        return text + lines.indented(4)
    }
}

extension TokenEndpoint {
    /// The token of `plain`.
    public static let plainToken = "the-token-0123456789"

    /// One that gives out the same token again and again, for tests whose promise is elsewhere.
    public static func plain() throws -> TokenEndpoint { try TokenEndpoint([.token(plainToken)]) }
}
