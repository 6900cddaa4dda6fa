internal import Cryptography

/// Where a secret comes from. Asked anew before each token request, so that a rotated secret needs no restart.
public protocol SecretProvider: Sendable {
    /// - Throws: what went wrong, as `SecretProviderError` where its text may be shown to an operator.
    func secret() async throws -> Secret
}

/// A secret that could not be had. The text names the place, never the content.
public struct SecretProviderError: Error, Sendable, Hashable, CustomStringConvertible {
    public var description: String

    public init(_ description: String) {
        self.description = description
    }
}

/// A secret that is known already. Where it can be, prefer one that is read from a file.
extension Secret: SecretProvider {
    public func secret() -> Secret { self }
}

/// A secret in a file, without the line end that editors add.
public struct SecretFileProvider: SecretProvider {
    public let path: String

    public init(path: String) {
        self.path = path
    }

    public func secret() async throws -> Secret {
        do {
            let secret = Secret(try SecretFile.read(path: path))
            guard !secret.isEmpty else { throw SecretProviderError("the secret file \(path) is empty") }
            return secret
        } catch let error as CryptographyError {
            throw SecretProviderError(error.description)
        }
    }
}

/// A secret made by a closure.
public struct SecretClosureProvider: SecretProvider {
    private let body: @Sendable () async throws -> Secret

    public init(_ body: @escaping @Sendable () async throws -> Secret) {
        self.body = body
    }

    public func secret() async throws -> Secret { try await body() }
}
