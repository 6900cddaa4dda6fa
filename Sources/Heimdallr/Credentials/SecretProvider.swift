internal import Cryptography

/// Where a secret comes from. Asked anew before each token request, so that a rotated secret needs no restart.
public protocol SecretProvider: Sendable {
    /// Returns the present secret. Called on any thread, once for each token request.
    /// - Throws: any error: the request is not sent. Only the text of a `SecretProviderError` is shown to the operator.
    func secret() async throws -> Secret
}

/// Reason why a secret is unavailable.
public struct SecretProviderError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The fault and its place, for an operator. Never contains the secret.
    public var description: String

    /// - Parameter description: names the place, never the content.
    public init(_ description: String) { self.description = description }
}

/// A constant secret. A file is better: the secret can then change without a restart.
extension Secret: SecretProvider {
    /// The secret itself.
    public func secret() -> Secret { self }
}

/// A secret in a file. The file is read anew each time; a line end after the secret, as editors add it, is left out.
public struct SecretFileProvider: SecretProvider {
    /// Where the file is; a relative path starts at the working directory.
    public let path: String

    /// - Parameter path: read when the secret is asked for, not before.
    public init(path: String) { self.path = path }

    /// Reads the file. Blocks the thread for as long as the disk takes.
    /// - Throws: `SecretProviderError` when the file can't be read or is empty.
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

/// A secret that a closure of yours gets from somewhere: a vault, say.
public struct SecretClosureProvider: SecretProvider {
    private let body: @Sendable () async throws -> Secret

    /// - Parameter body: called once for each token request, on any thread. An error prevents the request; a
    ///   `SecretProviderError` is shown to the operator.
    public init(_ body: @escaping @Sendable () async throws -> Secret) { self.body = body }

    /// Calls the closure.
    public func secret() async throws -> Secret { try await body() }
}
