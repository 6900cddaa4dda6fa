/// A private key or certificate that the configuration names, and where: for a check by somebody who can read them.
public struct KeyUse: Sendable, Equatable {
    public enum Content: Sendable, Equatable {
        /// Signs with that algorithm; `nil`: the usual one of its kind. The PEM file of its certificate, where there is
        /// one.
        case signing(SecretSource, algorithm: String?, certificate: String?)
        /// The same, or the JSON file of a Google service account, which holds one.
        case account(SecretSource, algorithm: String?)
        /// HS256: a secret that both sides know.
        case shared(SecretSource)
        /// PEM files of a certificate that is shown in TLS handshakes, and of its key.
        case tls(certificate: String, key: String)
        /// A PEM file of certificates that others are checked by.
        case trustAnchors(String)
    }

    public var content: Content
    /// The key of the configuration: `clients.billing.client_key`.
    public var name: String
    /// Where it stands; what is found is its message.
    public var place: ConfigurationError.Problem
}

/// All of them, in the order of the file. Where something stands makes no configuration another one.
public struct KeyUses: Sendable, Equatable {
    public var all: [KeyUse] = []

    public init() {}

    public static func == (one: KeyUses, other: KeyUses) -> Bool { true }
}

extension Section {
    /// Has the key checked once the whole configuration has been read.
    func note(_ content: KeyUse.Content, at key: String) {
        diagnostics.note(content, name: name(of: key), label: label(key), at: position(of: key))
    }
}
