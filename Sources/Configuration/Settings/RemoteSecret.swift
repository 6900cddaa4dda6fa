/// A secret that is asked of a server beside the proxy.
public indirect enum RemoteSecret: Sendable, Hashable, CustomStringConvertible {
    case vault(VaultSettings)
    case spiffe(SPIFFESettings)
    /// The ID token of a job of GitHub Actions, for this audience.
    case githubActions(audience: String)

    /// Without secrets, to show.
    public var description: String {
        switch self {
        case .vault(let settings): "Vault's \(settings.mount)/\(settings.path)"
        case .spiffe: "the SPIFFE agent"
        case .githubActions: "GitHub Actions"
        }
    }

    /// Secrets with which the server is asked.
    public var nested: [SecretSource] {
        guard case .vault(let settings) = self else { return [] }
        return switch settings.login {
        case .token(let source), .role(_, _, .secret(let source)): [source]
        case .role(_, _, .client): []
        }
    }

    /// Environment variables with credentials of the platform.
    public var variables: [String] {
        if case .githubActions = self { [Self.githubURL, Self.githubToken] } else { [] }
    }

    /// Names of the variables with which a job asks for its ID token.
    public static let githubURL = "ACTIONS_ID_TOKEN_REQUEST_URL"
    public static let githubToken = "ACTIONS_ID_TOKEN_REQUEST_TOKEN"

    /// Recipient of the answer; empty: the reader has to name it; `nil`: the answer is for nobody in particular.
    var audience: String? {
        get {
            switch self {
            case .vault: nil
            case .spiffe(let settings): settings.audience
            case .githubActions(let audience): audience
            }
        }
        set {
            switch self {
            case .vault: break
            case .spiffe(var settings):
                settings.audience = newValue ?? ""
                self = .spiffe(settings)
            case .githubActions: self = .githubActions(audience: newValue ?? "")
            }
        }
    }
}

/// A field of a secret in HashiCorp Vault or OpenBao, in an engine of the kind KV, version 2.
public struct VaultSettings: Sendable, Hashable {
    /// What a login sends as its JWT.
    public enum Identity: Sendable, Hashable {
        case secret(SecretSource)
        /// The access token of a client of the configuration.
        case client(String)
    }

    public enum Login: Sendable, Hashable {
        /// A token of Vault.
        case token(SecretSource)
        /// A role of an auth method that takes a JWT: `jwt` or `kubernetes`, by its path.
        case role(String, method: String, Identity)
    }

    /// Base URL, without a slash at its end.
    public var url: String
    public var mount = "secret"
    public var path: String
    public var field: String
    public var login: Login
    public var namespace: String?
    /// PEM file of the authorities that may sign the server's certificate; `nil` for the system's.
    public var caFile: String?
    /// Interval at which the secret is read again.
    public var refresh: Duration

    public init(
        url: String, path: String, field: String, login: Login, namespace: String? = nil, caFile: String? = nil,
        refresh: Duration
    ) {
        (self.url, self.path, self.field, self.login) = (url, path, field, login)
        (self.namespace, self.caFile, self.refresh) = (namespace, caFile, refresh)
    }
}

/// A JWT-SVID of the SPIFFE Workload API.
public struct SPIFFESettings: Sendable, Hashable {
    /// Path of the agent's Unix socket.
    public var socket: String
    public var audience: String
    /// The identity, if the agent has several for this process; empty for the first.
    public var id = ""

    public init(socket: String, audience: String, id: String = "") {
        (self.socket, self.audience, self.id) = (socket, audience, id)
    }
}
