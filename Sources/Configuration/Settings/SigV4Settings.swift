/// How requests are signed for AWS.
public struct SigV4Settings: Sendable, Equatable {
    public enum Credentials: Sendable, Equatable {
        case keys(accessKeyID: SecretSource, secretAccessKey: SecretSource, sessionToken: SecretSource?)
        /// Those that the container service of the machine hands out, and renews.
        case container(Container)
    }

    /// Where container credentials are asked for, as the environment says it.
    public struct Container: Sendable, Equatable {
        public var isTLS: Bool
        /// As in a URL.
        public var host: String
        public var port: UInt16
        /// Path and query.
        public var target: String
        /// Sent as it is in `Authorization`.
        public var authorization: SecretSource?
    }

    public var region: String
    public var service: String
    public var credentials: Credentials

    public init(region: String, service: String, credentials: Credentials) {
        self.region = region
        self.service = service
        self.credentials = credentials
    }

    /// What has to be read, in order.
    public var secrets: [SecretSource] {
        switch credentials {
        case .keys(let id, let secret, let token): [id, secret] + [token].compactMap(\.self)
        case .container(let container): [container.authorization].compactMap(\.self)
        }
    }
}
