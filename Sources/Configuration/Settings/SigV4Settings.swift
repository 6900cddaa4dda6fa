import HTTPMessage

/// Settings of AWS signatures.
public struct SigV4Settings: Sendable, Equatable {
    public enum Credentials: Sendable, Equatable {
        case keys(accessKeyID: SecretSource, secretAccessKey: SecretSource, sessionToken: SecretSource?)
        /// Temporary credentials from the machine's container service.
        case container(Container)
    }

    /// Endpoint of the container service, from the environment.
    public struct Container: Sendable, Equatable {
        public var url: WebURL
        /// Value of the `Authorization` field, sent unchanged.
        public var authorization: SecretSource?
    }

    public var region: String
    public var service: String
    public var credentials: Credentials

    /// Sources of the secrets, in the order of their reading.
    public var secrets: [SecretSource] {
        switch credentials {
        case .keys(let id, let secret, let token): [id, secret] + [token].compactMap(\.self)
        case .container(let container): [container.authorization].compactMap(\.self)
        }
    }
}
