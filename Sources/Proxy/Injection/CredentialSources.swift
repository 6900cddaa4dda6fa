import Configuration
import CurlTransport
import FileSystem
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
typealias FixedCredential = FreshValue<InjectedCredential>

enum InjectedCredential: Sendable {
    case value(Secret)
    case keys(SigningKeys)

    /// Compares with a program's text, in a time that depends only on the lengths.
    func isText(_ text: String) -> Bool {
        guard case .value(let secret) = self else { return false }
        return secret == Secret(text)
    }
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
        var retry = Self.interval
        let read: @Sendable () async throws -> FixedCredential.Reading
        if case .sigv4(let settings) = injection, case .container(let container) = settings.credentials {
            retry = .seconds(5)
            let credentials = ContainerCredentials(
                container, authorization: container.authorization.map(secret),
                client: BufferedClient(options: PoolOptions(), loop: loop))
            read = {
                let reading = try await credentials.read()
                return .init(.keys(reading.value), ends: reading.ends, again: reading.again)
            }
        } else {
            let secrets = injection.secrets
            let isConstant = secrets.allSatisfy { if case .literal = $0 { true } else { false } }
            let make = maker(injection)
            read = { .init(try await make(), again: isConstant ? nil : Self.interval) }
        }
        return FixedCredential(retry: (retry, retry), read: read) { outcome in
            if case .failed(let fault, hasValue: _, isNew: true) = outcome { failed(entry, fault) }
        }
    }

    private func maker(
        _ injection: UpstreamSettings.Injection
    ) -> @Sendable () async throws -> InjectedCredential {
        switch injection {
        case .header(_, let scheme, let source):
            let value = source.map(secret)
            return { .value(try await Self.checked(value, InjectedValue.fieldValue).after(scheme: scheme)) }
        case .query(_, let source):
            let value = source.map(secret)
            return { .value(try await Self.checked(value, InjectedValue.fieldValue)) }
        case .basic(let username, let password):
            let (name, word) = (username.map(secret), password.map(secret))
            return {
                .value(
                    .basic(
                        username: try await Self.checked(name, InjectedValue.username),
                        password: try await Self.checked(word, InjectedValue.password)))
            }
        case .sigv4(let settings):
            guard case .keys(let id, let key, let token) = settings.credentials else {
                return { throw SecretProviderError("the credentials come from the container's endpoint") }
            }
            let (identifier, secretKey, session) = (secret(id), secret(key), token.map(secret))
            return {
                let id = try await Self.checked(identifier, InjectedValue.word)
                let key = try await Self.checked(secretKey, InjectedValue.fieldValue)
                let token = try await Self.checked(session, InjectedValue.word)
                return .keys(
                    key.withSpan { key in
                        token.withSpan { SigningKeys(accessKeyID: id.revealedBytes, secret: key, token: $0) }
                    })
            }
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
