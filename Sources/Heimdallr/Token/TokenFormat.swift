internal import WireText

/// A form in which a program outside the proxy takes a token: a row of `all`.
package struct TokenFormat: Sendable {
    package let name: String
    /// Whether the program states its request on standard input, and may name another operation than `get`.
    package let isConversation: Bool
    /// Whether only a program's request says all that the text needs.
    package let needsQuestion: Bool
    private let write: @Sendable (ExportedToken, TokenAsked) throws(ExportFault) -> String

    private init(
        _ name: String, isConversation: Bool = false, needsQuestion: Bool = false,
        _ write: @escaping @Sendable (ExportedToken, TokenAsked) throws(ExportFault) -> String
    ) {
        (self.name, self.isConversation, self.write) = (name, isConversation, write)
        self.needsQuestion = isConversation || needsQuestion
    }

    /// - Throws: `ExportFault` if the program would misunderstand the text, or send the token elsewhere.
    package func text(_ token: ExportedToken, for asked: TokenAsked) throws(ExportFault) -> String {
        try write(token, asked)
    }

    package static func named(_ name: String) -> TokenFormat? { all.first { $0.name == name } }

    package static let all = [
        plain,
        TokenFormat("json") { token, _ in
            line([
                .init("access_token", .string(token.value.revealed)), .init("token_type", "Bearer"),
                .init("expires_in", token.left.map { .number($0) } ?? .null),
                .init("expires_at", JSON(token.endText)),
            ])
        },
        TokenFormat("header") { token, _ in "Authorization: Bearer \(token.value.revealed)\n" },
        kubectl, git, docker, aws, netrc, gcloud, google, azure, awsContainer, awsInstance,
    ]

    package static let plain = TokenFormat("plain") { token, _ in token.value.revealed + "\n" }

    // MARK: Programs

    /// Reference of the Kubernetes API, `ExecCredential`. client-go refuses an answer of another version than its own.
    private static let kubectl = TokenFormat("kubectl") { token, asked throws(ExportFault) in
        let version = asked.apiVersion ?? "client.authentication.k8s.io/v1"
        guard ["v1", "v1beta1"].map({ "client.authentication.k8s.io/" + $0 }).contains(version) else {
            throw ExportFault(
                "this apiVersion of KUBERNETES_EXEC_INFO is unknown: write v1 or v1beta1 into the kubeconfig")
        }
        return line([
            .init("apiVersion", .string(version)), .init("kind", "ExecCredential"),
            .init(
                "status",
                object([
                    .init("token", .string(token.value.revealed)),
                    .init("expirationTimestamp", JSON(token.endText)),
                ])),
        ])
    }

    /// gitcredentials(7), git-credential(1). Without a user name git would prompt for it.
    private static let git = TokenFormat("git", isConversation: true) { token, asked throws(ExportFault) in
        guard asked.scheme != "http" || asked.isLoopback else {
            throw ExportFault("git asks for an http:// address, where the token would cross the network in plain text")
        }
        let end = token.end.map { "password_expiry_utc=\($0)\n" } ?? ""
        return "username=\(try asked.userOrDefault())\npassword=\(token.value.revealed)\n\(end)"
    }

    /// Protocol of docker-credential-helpers.
    private static let docker = TokenFormat("docker", isConversation: true) { token, asked throws(ExportFault) in
        let user = try asked.userOrDefault()
        // The program would send the token as a refresh token.
        guard user != "<token>" else { throw ExportFault("with the user <token>, it would be sent as a refresh token") }
        return line([
            .init("ServerURL", .string(asked.host ?? "")), .init("Username", .string(user)),
            .init("Secret", .string(token.value.revealed)),
        ])
    }

    /// `credential_process` of AWS SDKs. The keys are members of the token endpoint's answer.
    private static let aws = TokenFormat("aws") { token, _ throws(ExportFault) in
        let (key, secret, session) = try keys(of: token)
        return line([
            .init("Version", .number(1)), .init("AccessKeyId", .string(key)), .init("SecretAccessKey", .string(secret)),
            .init("SessionToken", .string(session)), .init("Expiration", JSON(token.endText)),
        ])
    }

    /// curl drops a longer line without a word, and sends the request unsigned.
    private static let longestNetrcLine = 4095

    private static let netrc = TokenFormat("netrc", needsQuestion: true) { token, asked throws(ExportFault) in
        guard let host = asked.host, !host.isEmpty else { throw ExportFault("a netrc line names a host: add --host") }
        let (user, value) = (try asked.userOrDefault(), token.value.revealed)
        // Programs differ in how they read these.
        guard !(host + user + value).contains(where: { "\"'\\#".contains($0) }), !user.contains(" ") else {
            throw ExportFault("the host, the user or the token has a character that a netrc file can't hold")
        }
        let text = "machine \(host) login \(user) password \(value)"
        guard text.utf8.count <= longestNetrcLine else {
            throw ExportFault("the line would have more than \(longestNetrcLine) bytes, and curl drops such a line")
        }
        return text + "\n"
    }

    /// Executable-sourced credentials of google-auth: a subject token, which it exchanges at its `token_url`.
    private static let gcloud = TokenFormat("gcloud") { token, _ in
        line([
            .init("version", .number(1)), .init("success", true),
            .init("token_type", "urn:ietf:params:oauth:token-type:jwt"),
            .init("id_token", .string(token.value.revealed)),
            .init("expiration_time", token.end.map { .number($0) } ?? .null),
        ])
    }

    // MARK: Metadata services

    private static let google = TokenFormat("google") { token, _ in
        line([
            .init("access_token", .string(token.value.revealed)), .init("expires_in", .number(token.left ?? 3600)),
            .init("token_type", "Bearer"),
        ])
    }

    /// Programs want numbers as texts, some `expires_in` and some `expires_on`.
    private static let azure = TokenFormat("azure") { token, _ in
        line([
            .init("access_token", .string(token.value.revealed)), .init("token_type", "Bearer"),
            .init("expires_in", .string(String(token.left ?? 3600))),
            .init("expires_on", JSON(token.end.map { String($0) })),
        ])
    }

    private static let awsContainer = TokenFormat("aws-container") { token, _ throws(ExportFault) in
        line(try credentials(token))
    }

    private static let awsInstance = TokenFormat("aws-instance") { token, _ throws(ExportFault) in
        line([.init("Code", "Success"), .init("Type", "AWS-HMAC")] + (try credentials(token)))
    }

    private static func credentials(_ token: ExportedToken) throws(ExportFault) -> [JSON.Member] {
        let (key, secret, session) = try keys(of: token)
        return [
            .init("AccessKeyId", .string(key)), .init("SecretAccessKey", .string(secret)),
            .init("Token", .string(session)), .init("Expiration", JSON(token.endText)),
        ]
    }

    private static func keys(
        of token: ExportedToken
    ) throws(ExportFault) -> (key: String, secret: String, session: String) {
        guard let key = token.members["AccessKeyId"]?.string, let secret = token.members["SecretAccessKey"]?.string
        else {
            throw ExportFault(
                "these are no keys of AWS: the token endpoint's answer has no AccessKeyId and SecretAccessKey. For "
                    + "AssumeRoleWithWebIdentity use the format plain")
        }
        return (key, secret, token.members["SessionToken"]?.string ?? token.value.revealed)
    }

    // MARK: JSON

    /// Programs refuse `null` in these members, so an unknown end leaves its member out.
    private static func object(_ members: [JSON.Member]) -> JSON { .object(members.filter { !$0.value.isNull }) }

    private static func line(_ members: [JSON.Member]) -> String {
        object(members).text(.compact, escaping: .required) + "\n"
    }
}

extension JSON {
    fileprivate var isNull: Bool { if case .null = self { true } else { false } }
}

/// A token that leaves the proxy. It holds copies that are not wiped: keep it for a short time only.
package struct ExportedToken: Sendable {
    package let value: Secret
    /// The end in seconds since 1970, rounded down; `nil` if no end is known.
    package let end: Int?
    /// Seconds until the end.
    package let left: Int?
    /// Time until the end.
    package let timeLeft: Duration?
    /// Time from the token's issue to its end.
    package let life: Duration?
    /// Other members of the token endpoint's answer.
    let members: [String: JSONValue]

    package var endText: String? { end.map { RFC3339.text($0) } }
}

/// A program's request for a token.
package struct TokenAsked: Sendable {
    /// Host, or address, that the token is for.
    package var host: String?
    package var user: String?
    package var scheme: String?
    package var apiVersion: String?

    package init() {}

    /// A user name that servers with Basic accept beside a token, unless they want another.
    private static let usualUser = "oauth2"
    private static let loopbackHosts = ["localhost", "127.0.0.1", "[::1]"]

    func userOrDefault() throws(ExportFault) -> String {
        let user = user ?? Self.usualUser
        guard !user.isEmpty, user.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }) else {
            throw ExportFault("the user name is empty or has a control character")
        }
        return user
    }

    var isLoopback: Bool {
        Self.loopbackHosts.contains { host == $0 || host?.hasPrefix($0 + ":") == true }
    }
}

/// Reason why a token is not given to a program.
package struct ExportFault: Error, Equatable {
    package let sentence: String
    package init(_ sentence: String) { self.sentence = sentence }
}
