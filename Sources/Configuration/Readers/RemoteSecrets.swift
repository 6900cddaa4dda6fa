import HTTPMessage
import WireText

// Secrets that are asked of a server: Vault, the SPIFFE agent, GitHub Actions.
extension Section {
    /// Reads the source of such a secret; `nil` if the section names none, or a malformed one.
    /// - Parameter refresh: value of the section's `refresh`.
    func remoteSecret(refresh: Duration) -> RemoteSecret? {
        let vault = section("vault")?.vaultSecret(refresh: refresh)
        let spiffe = section("spiffe").map { section in
            defer { section.finish() }
            let socket = section.value("socket", Self.agentSocket)
            section.need(
                "socket", saying: "\(section.path): write `socket: unix:/run/spire/agent.sock`, where the agent listens"
            )
            let audience = section.value("audience", Grammar.nonempty) ?? ""
            return SPIFFESettings(
                socket: socket ?? "", audience: audience, id: section.value("id", Self.identity) ?? "")
        }
        let github = section("github_actions").map { section in
            defer { section.finish() }
            return section.value("audience", Grammar.nonempty) ?? ""
        }
        if let vault { return .vault(vault) }
        if let spiffe { return .spiffe(spiffe) }
        return github.map { .githubActions(audience: $0) }
    }

    /// Gives a secret that is made for a recipient its audience. Reports one without.
    /// - Parameter usual: the audience that this key's server expects; `nil` if none is known.
    func addressed(_ remote: RemoteSecret, _ key: String, usual: String?) -> RemoteSecret {
        guard remote.audience == "" else { return remote }
        var remote = remote
        if let usual { remote.audience = usual } else { error(key, "write `audience`, the recipient of this token") }
        return remote
    }

    private func vaultSecret(refresh: Duration) -> VaultSettings? {
        defer { finish() }
        var isPlain = false
        read("allow_plaintext", into: &isPlain, Grammar.boolean)
        let url = value("url", Self.vaultURL)
        var (mount, method) = ("secret", "jwt")
        read("mount", into: &mount, Self.vaultPath)
        let path = value("path", Self.vaultPath)
        let field = value("field", Grammar.nonempty)
        let token = secret("token", isNested: true)
        let role = value("role", Grammar.printable)
        read("auth", into: &method, Self.vaultPath)
        let jwt = secret("jwt", isNested: true)
        let client = value("client", Grammar.nonempty)
        if let client { diagnostics.note(client: client, at: position(of: "client"), label: label("client")) }
        let namespace = value("namespace", Self.vaultPath)
        let caFile = trustAnchorsFile("ca_file")
        for key in ["url", "path", "field"] {
            need(key, saying: "\(self.path): write `\(key)`")
        }
        if let url, WebURL.scheme(of: url) == .http, !isPlain {
            refusePlaintext("url", "secrets would cross the network in plain text")
        }
        need("token", "role", saying: "\(self.path): write `token`, or the `role` of a login with `jwt` or `client`")
        refuse("role", with: "token", saying: "a token needs no login: leave out `role` or `token`")
        refuse("jwt", without: "role", saying: "this belongs to `role`: write that, too")
        refuse("client", without: "role", saying: "this belongs to `role`: write that, too")
        refuse("auth", without: "role", saying: "this belongs to `role`: write that, too")
        refuse("client", with: "jwt", saying: "a login has one JWT: leave out `jwt` or `client`")
        guard let url, let path, let field else { return nil }
        let login: VaultSettings.Login
        if let token {
            login = .token(token)
        } else {
            guard let role else { return nil }
            need("jwt", "client", for: "role", saying: "a login sends a JWT: write `jwt`, a secret, or `client`")
            guard let identity = jwt.map({ .secret($0) }) ?? client.map(VaultSettings.Identity.client) else {
                return nil
            }
            login = .role(role, method: method, identity)
        }
        var settings = VaultSettings(
            url: url, path: path, field: field, login: login, namespace: namespace, caFile: caFile, refresh: refresh)
        settings.mount = mount
        return settings
    }

    private static func vaultURL(_ text: String) throws(BadValue) -> String {
        let url = try WebURL(
            value: text, example: "https://vault.example.com:8200", user: "; write `token` or `role`", query: "")
        guard url.path.isEmpty || url.path == "/" else {
            throw BadValue("write the server's URL without a path: `mount` and `path` have their own keys")
        }
        return "\(url.scheme.rawValue)://\(url.authority)"
    }

    /// A path that is written into a URL as it stands.
    private static func vaultPath(_ text: String) throws(BadValue) -> String {
        let segments = text.split(separator: "/", omittingEmptySubsequences: false)
        let isPlain = segments.allSatisfy { segment in
            !segment.isEmpty && segment != "." && segment != ".."
                && segment.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-._~".utf8.contains($0) }
        }
        return try Grammar.checked(
            text, isPlain, BadValue("write names of letters, digits and - . _ ~, with / between them and at no end"))
    }

    /// `unix:/PATH` or `unix:///PATH`, as SPIFFE_ENDPOINT_SOCKET has it. Gives the path.
    private static func agentSocket(_ text: String) throws(BadValue) -> String {
        let path = text.hasPrefix("unix:///") ? text.dropFirst(7) : text.dropFirst(5)
        guard text.hasPrefix("unix:/"), !path.hasPrefix("//"), path.utf8.count <= 107 else {
            throw BadValue(
                "write unix: and an absolute path of at most 107 bytes, such as unix:/run/spire/agent.sock",
                matching: "^unix:/")
        }
        return String(path)
    }

    private static func identity(_ text: String) throws(BadValue) -> String {
        try Grammar.checked(
            text, text.hasPrefix("spiffe://") && Grammar.isVisible(text), BadValue("write spiffe://DOMAIN/PATH"))
    }
}
