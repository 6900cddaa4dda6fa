extension UpstreamSettings {
    /// An entry of `inject`: a value, and the part of the request that receives it.
    public enum Injection: Sendable, Equatable {
        /// A header field. `scheme` may be empty. `value` is `nil` for the client's token.
        case header(name: String, scheme: String, value: SecretSource? = nil)
        /// A query parameter. `value` is `nil` for the client's token.
        case query(name: String, value: SecretSource? = nil)
        /// HTTP Basic (RFC 7617) in `Authorization`. `nil` means an empty name or password.
        case basic(username: SecretSource?, password: SecretSource?)
        /// AWS Signature Version 4.
        case sigv4(SigV4Settings)

        /// Name of the field or parameter. Field names are case-insensitive.
        public var name: String {
            switch self {
            case .header(let name, _, _), .query(let name, _): name
            case .basic, .sigv4: "Authorization"
            }
        }

        /// Whether the value is the client's token.
        public var takesToken: Bool {
            switch self {
            case .header(_, _, let value), .query(_, let value): value == nil
            case .basic, .sigv4: false
            }
        }

        /// Whether the value goes into the query.
        public var isQuery: Bool { if case .query = self { true } else { false } }

        /// Sources of the secrets, in the order of their reading.
        public var secrets: [SecretSource] {
            switch self {
            case .header(_, _, let value), .query(_, let value): [value].compactMap(\.self)
            case .basic(let username, let password): [username, password].compactMap(\.self)
            case .sigv4(let settings): settings.secrets
            }
        }
    }
}

extension UpstreamSettings.Injection: CustomStringConvertible {
    /// Kind and name, no value: `Authorization: Bearer <token>`, `?access_token=<token>`, `X-Api-Key: <secret>`.
    public var description: String {
        let what = takesToken ? "<token>" : "<secret>"
        return switch self {
        case .header(let name, let scheme, _): scheme.isEmpty ? "\(name): \(what)" : "\(name): \(scheme) \(what)"
        case .query(let name, _): "?\(name)=\(what)"
        case .basic: "Authorization: Basic <secret>"
        case .sigv4(let settings):
            "Authorization: AWS4-HMAC-SHA256 <signature for \(settings.service) in \(settings.region)>"
        }
    }
}

extension UpstreamSettings {
    /// Whether requests get any injected value.
    public var injects: Bool { !injections.isEmpty }

    /// Whether AWS credentials come from the machine's container service.
    var usesContainerCredentials: Bool {
        injections.contains { injection in
            guard case .sigv4(let settings) = injection, case .container = settings.credentials else { return false }
            return true
        }
    }

    /// Description of the injected values, for `check` and `why`; empty if there are none.
    public var injectionText: String {
        guard injects else { return "" }
        let text = injections.map(\.description).joined(separator: ", ")
        return placeholder == nil ? text : text + ", in place of the placeholder"
    }
}
