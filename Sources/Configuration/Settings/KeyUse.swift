/// A private key or certificate in the configuration, with its position, to be checked by code that can read keys.
public struct KeyUse: Sendable, Equatable {
    public enum Content: Sendable, Equatable {
        /// A key that signs with that algorithm; `nil` for the usual one of its kind. With the PEM file of its
        /// certificate, if any.
        case signing(SecretSource, algorithm: String?, certificate: String?)
        /// A signing key, or the JSON file of a Google service account, which holds one.
        case account(SecretSource, algorithm: String?)
        /// A secret shared for HS256.
        case shared(SecretSource)
        /// PEM files of a client certificate for TLS, and of its key.
        case tls(certificate: String, key: String)
        /// PEM files of a listener's certificate, and of its key.
        case listener(certificate: String, key: String)
        /// PEM files of the certificate shown to programs whose TLS is opened, and of its key; with the exact host.
        case server(certificate: String, key: String, host: String?)
        /// A PEM file of trust anchors.
        case trustAnchors(String)
    }

    public var content: Content
    /// The key of the configuration: `clients.billing.client_key`.
    public var name: String
    /// Its position. The check's result becomes the message.
    public var location: ConfigurationError.Problem
}

/// All of them, in the order of the file. Positions do not count when configurations are compared.
public struct KeyUses: Sendable, Equatable {
    public var all: [KeyUse] = []
    /// Positions of what a start opens: by `store`, `audit`, `admin`, and by the address of a listener.
    public var opened: [String: ConfigurationError.Problem] = [:]

    public static func == (one: KeyUses, other: KeyUses) -> Bool { true }
}

extension Section {
    /// Records the key, to be checked once the whole configuration has been read.
    func note(_ content: KeyUse.Content, at key: String) {
        diagnostics.note(content, name: name(of: key), label: label(key), at: position(of: key))
    }
}
