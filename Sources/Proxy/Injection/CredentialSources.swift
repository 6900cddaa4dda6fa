import Configuration
import Heimdallr

/// Where what is injected comes from, besides clients' tokens.
public struct CredentialSources: Sendable {
    /// Who reads a secret; asked again and again.
    public var secret: @Sendable (SecretSource) -> any SecretProvider

    public init(secret: @escaping @Sendable (SecretSource) -> any SecretProvider) { self.secret = secret }

    /// None: nothing but tokens can be injected.
    public static let none = CredentialSources { source in
        SecretClosureProvider { throw SecretProviderError("nobody reads \(source)") }
    }
}

extension CredentialSources {
    /// A change counts within so long.
    private static let interval = Duration.seconds(1)

    /// What an entry of `inject` puts on, as it goes out; `nil` for tokens.
    ///
    /// - Parameters:
    ///   - place: of the entry, for the log.
    ///   - failed: told when it can't be read, or can't go onto a request.
    func value(
        _ injection: UpstreamSettings.Injection, place: String,
        failed: @escaping @Sendable (String, any Error) -> Void
    ) -> FreshValue<Secret>? {
        guard !injection.takesToken else { return nil }
        let secrets = injection.secrets
        let isFixed = !secrets.contains { if case .literal = $0 { false } else { true } }
        let again = isFixed ? nil : Self.interval
        let make = Self.maker(injection, secrets.map(secret))
        return FreshValue {
            FreshValue.Reading(value: try await make(), again: again)
        } failed: {
            failed(place, $0)
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
        }
    }

    /// - Throws: `SecretProviderError` for what can't go onto a request, too.
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
