import Configuration
import CurlTransport
import Heimdallr
import Reactor
import SigV4

/// Sources of injected values other than clients' tokens.
public struct CredentialSources: Sendable {
    /// Returns the provider of a secret. The secret is read repeatedly.
    public var secret: @Sendable (SecretSource) -> any SecretProvider

    public init(secret: @escaping @Sendable (SecretSource) -> any SecretProvider) { self.secret = secret }

    /// No sources: only tokens can be injected.
    public static let none = CredentialSources { source in
        SecretClosureProvider { throw SecretProviderError("there is no reader for \(source)") }
    }
}

/// Injected value other than a token. Any thread.
enum FixedCredential: Sendable {
    case value(FreshValue<Secret>)
    case keys(FreshValue<SigningKeys>)

    func start() async {
        switch self {
        case .value(let value): await value.start()
        case .keys(let keys): await keys.start()
        }
    }

    var isThere: Bool {
        switch self {
        case .value(let value): value.current() != nil
        case .keys(let keys): keys.current() != nil
        }
    }

    var value: Secret? { if case .value(let value) = self { value.current() } else { nil } }
}

extension CredentialSources {
    /// Time between two readings of a secret outside the configuration, such as a file.
    private static let interval = Duration.seconds(1)

    /// Returns the value of an entry of `inject`; `nil` for tokens.
    /// - Parameters:
    ///   - entry: name of the entry for the log.
    ///   - loop: loop for requests to the endpoint of `container` credentials.
    ///   - failed: called when the value can't be read or must not be put on a request.
    func credential(
        _ injection: UpstreamSettings.Injection, entry: String, on loop: EventLoop,
        failed: @escaping @Sendable (String, any Error) -> Void
    ) -> FixedCredential? {
        guard !injection.takesToken else { return nil }
        let report: @Sendable (any Error) -> Void = { failed(entry, $0) }
        if case .sigv4(let settings) = injection { return .keys(keys(settings, on: loop, failed: report)) }
        let secrets = injection.secrets
        let again = Self.again(secrets)
        let make = Self.maker(injection, secrets.map(secret))
        return .value(FreshValue(read: { .init(value: try await make(), again: again) }, failed: report))
    }

    private static func again(_ secrets: [SecretSource]) -> Duration? {
        secrets.contains { if case .literal = $0 { false } else { true } } ? interval : nil
    }

    private func keys(
        _ settings: SigV4Settings, on loop: EventLoop, failed: @escaping @Sendable (any Error) -> Void
    ) -> FreshValue<SigningKeys> {
        switch settings.credentials {
        case .container(let container):
            let credentials = ContainerCredentials(
                container, authorization: container.authorization.map(secret),
                client: BufferedClient(options: PoolOptions(), loop: loop))
            return FreshValue(afterFailure: .seconds(5), read: { try await credentials.read() }, failed: failed)
        case .keys(let id, let key, let token):
            let (identifier, secret, session) = (self.secret(id), self.secret(key), token.map(self.secret))
            let again = Self.again(settings.secrets)
            return FreshValue(
                read: {
                    let id = try await Self.checked(identifier, InjectedValue.word)
                    let key = try await Self.checked(secret, InjectedValue.fieldValue)
                    let token = try await Self.checked(session, InjectedValue.word)
                    let keys = key.withSpan { key in
                        token.withSpan { SigningKeys(accessKeyID: id.revealedBytes, secret: key, token: $0) }
                    }
                    return .init(value: keys, again: again)
                }, failed: failed)
        }
    }

    private static func maker(
        _ injection: UpstreamSettings.Injection, _ providers: [any SecretProvider]
    ) -> @Sendable () async throws -> Secret {
        switch injection {
        case .header(_, let scheme, _):
            return { try await checked(providers.first, InjectedValue.fieldValue).after(scheme: scheme) }
        case .query:
            return { try await checked(providers.first, InjectedValue.fieldValue) }
        case .basic(let username, let password):
            let (name, word) = (username == nil ? nil : providers.first, password == nil ? nil : providers.last)
            return {
                .basic(
                    username: try await checked(name, InjectedValue.username),
                    password: try await checked(word, InjectedValue.password))
            }
        case .sigv4: return { throw SecretProviderError("each request gets a new signature") }
        }
    }

    /// Reads a secret, and checks it by `rule`. Returns an empty secret if `provider` is `nil`.
    /// - Throws: the provider's error, or `SecretProviderError` for a value that must not be put on a request.
    private static func checked(
        _ provider: (any SecretProvider)?, _ rule: InjectedValue.Rule
    ) async throws -> Secret {
        guard let provider else { return Secret("") }
        let secret = try await provider.secret()
        if let fault = rule(secret.revealedBytes) {
            throw SecretProviderError("the secret can't go onto a request: \(fault)")
        }
        return secret
    }
}
