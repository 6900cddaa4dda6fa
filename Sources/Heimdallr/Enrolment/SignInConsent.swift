internal import Cryptography
internal import WireText

extension SignInOffer {
    /// A part of an offer, which the person agrees to.
    public enum Part: Sendable, Hashable, CaseIterable {
        /// The API.
        case resource
        /// The authorization server.
        case issuer
        /// The server's endpoints.
        case endpoints
        /// The scopes.
        case scope
        /// The kind of the client, and its `client_id` unless it is registered at run time.
        case client
        /// Requirements of the API for the person's authentication.
        case authentication
    }

    /// Digests of the parts, for the form by which a person agrees; `nil`: libcrypto has no memory left.
    public var consent: String? {
        let digests = Part.allCases.compactMap { digest(of: $0) }
        return digests.count == Part.allCases.count ? digests.joined(separator: ".") : nil
    }

    /// Returns the parts that have changed since an earlier consent. If the text is no consent, returns all parts.
    public func changes(since consent: String) -> [Part] {
        let agreed = consent.split(separator: ".", omittingEmptySubsequences: false)
        guard agreed.count == Part.allCases.count else { return Part.allCases }
        return zip(Part.allCases, agreed).filter { digest(of: $0) != String($1) }.map(\.0)
    }

    private func digest(of part: Part) -> String? {
        let texts: [String]
        switch part {
        case .resource: texts = resource.map { [$0] } ?? []
        case .issuer: texts = [issuer]
        case .endpoints:
            texts = [metadata.endpoints, metadata.aliases].flatMap { $0.map { "\($0.rawValue) \($1)" }.sorted() }
        case .scope: texts = scope
        case .client:
            switch client {
            case .configured(let identifier): texts = ["configured", identifier]
            case .document(let address): texts = ["document", address]
            case .typed(let identifier): texts = ["typed", identifier]
            // Another process may register the client meanwhile, so both cases count as equal.
            case .known, .registered: texts = ["registered"]
            case .wanted: texts = ["wanted"]
            }
        case .authentication: texts = [acrValues ?? "", maxAge.map { "\($0)" } ?? ""]
        }
        return TextDigest.make(texts)
    }
}

enum TextDigest {
    /// Returns the SHA-256 of the texts with their lengths, in base64url; `nil`: libcrypto has no memory left.
    static func make(_ texts: [String]) -> String? {
        let bytes = texts.flatMap { Array("\($0.utf8.count):\($0)".utf8) }
        return (try? Digest.sha256(bytes)).map { Base64.encode($0, alphabet: .url) }
    }
}
