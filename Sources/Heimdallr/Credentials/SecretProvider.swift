internal import Cryptography

/// Source of a secret. It is read before each token request, so that a rotated secret needs no restart.
public protocol SecretProvider: Sendable {
    /// Returns the current secret. Called on any thread, once for each token request.
    /// - Throws: any error prevents the request. Only the text of a `SecretProviderError` is shown to the operator.
    func secret() async throws -> Secret
}

/// Reason why a secret is unavailable.
public struct SecretProviderError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The fault and where it is, for an operator. Never contains the secret.
    public var description: String
    /// Whether the secret may only be late, so that callers wait for it.
    var mayPass = true

    /// - Parameter description: names the place of the secret, never its content.
    public init(_ description: String) { self.description = description }
}

/// A constant secret. A file is better: the secret can then change without a restart.
extension Secret: SecretProvider {
    /// The secret itself.
    public func secret() -> Secret { self }
}

/// A secret in a file, which is read each time. A line end after the secret, as editors add it, is removed.
public struct SecretFileProvider: SecretProvider {
    /// Path of the file. A relative path starts at the working directory.
    public let path: String

    /// - Parameter path: path of the file. It is first read for a token request.
    public init(path: String) { self.path = path }

    /// Reads the file. Blocks the thread until the disk answers.
    /// - Throws: `SecretProviderError` if the file can't be read or is empty.
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

/// A secret that your closure returns, for example from a vault.
public struct SecretClosureProvider: SecretProvider {
    private let body: @Sendable () async throws -> Secret

    /// - Parameter body: called once for each token request, on any thread. An error prevents the request. Only
    ///   the text of a `SecretProviderError` is shown to the operator.
    public init(_ body: @escaping @Sendable () async throws -> Secret) { self.body = body }

    /// Calls the closure.
    public func secret() async throws -> Secret { try await body() }
}
