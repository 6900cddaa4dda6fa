/// Settings of AWS signatures.
public struct SigV4Settings: Sendable, Equatable {
    public enum Credentials: Sendable, Equatable {
        case keys(accessKeyID: SecretSource, secretAccessKey: SecretSource, sessionToken: SecretSource?)
        /// Temporary credentials of the machine's container service.
        case container(Container)
    }

    /// The container service's endpoint, from the environment.
    public struct Container: Sendable, Equatable {
        public var isTLS: Bool
        /// As in a URL.
        public var host: String
        public var port: UInt16
        /// Path and query.
        public var target: String
        /// Value of `Authorization`, sent unchanged.
        public var authorization: SecretSource?
    }

    public var region: String
    public var service: String
    public var credentials: Credentials

    /// The secrets to read, in order.
    public var secrets: [SecretSource] {
        switch credentials {
        case .keys(let id, let secret, let token): [id, secret] + [token].compactMap(\.self)
        case .container(let container): [container.authorization].compactMap(\.self)
        }
    }
}
