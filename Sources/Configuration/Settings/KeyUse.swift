/// A private key or certificate in the configuration, with its position. `KeyCheck`, in another target, checks it.
public struct KeyUse: Sendable, Equatable {
    public enum Content: Sendable, Equatable {
        /// A signing key, with the PEM file of its certificate, if any. `algorithm` is `nil` for the default of the
        /// key's type.
        case signing(SecretSource, algorithm: String?, certificate: String?)
        /// A signing key, or the JSON file of a Google service account, which contains a signing key.
        case account(SecretSource, algorithm: String?)
        /// A secret shared for HS256.
        case shared(SecretSource)
        /// PEM files of a TLS client certificate and of its key.
        case tls(certificate: String, key: String)
        /// PEM files of a listener's certificate and of its key.
        case listener(certificate: String, key: String)
        /// PEM files of a certificate for intercepted TLS and of its key, for this host.
        case server(certificate: String, key: String, host: String)
        /// A PEM file of trust anchors.
        case trustAnchors(String)

        /// Paths of the files with the key and the certificates.
        public var files: [String] {
            switch self {
            case .signing(let source, _, let certificate): [source.path, certificate].compactMap(\.self)
            case .account(let source, _), .shared(let source): [source.path].compactMap(\.self)
            case .tls(let certificate, let key), .listener(let certificate, let key),
                .server(let certificate, let key, _):
                [certificate, key]
            case .trustAnchors(let file): [file]
            }
        }
    }

    public var content: Content
    /// Path of the configuration's key: `clients.billing.client_key`.
    public var name: String
    /// Position of this path. `message` is the beginning of a message, to which the check appends its result.
    public var location: ConfigurationError.Problem
}

/// All key uses, as the readers found them. `==` is always true, so that positions don't make configurations differ.
public struct KeyUses: Sendable, Equatable {
    public var all: [KeyUse] = []
    /// Positions of sections and listeners that the proxy opens at its start, by section name or listener address.
    public var opened: [String: ConfigurationError.Problem] = [:]

    public static func == (one: KeyUses, other: KeyUses) -> Bool { true }
}

extension Section {
    /// Records a private key or certificate. Its check follows when the whole configuration has been read.
    func note(_ content: KeyUse.Content, at key: String) {
        diagnostics.note(content, name: shownName(of: key), label: label(key), at: position(of: key))
    }
}
