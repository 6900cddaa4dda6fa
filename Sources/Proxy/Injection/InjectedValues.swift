import Configuration
import Heimdallr
import SigV4

/// Values for one upstream's requests. Each array has an element per entry of `inject`. Loop's thread only.
final class InjectedValues {
    private let rules: InjectionRules
    /// Formats of the token on a request; `nil` for an entry without a token.
    private let authenticators: [(any ResourceRequestAuthenticator)?]
    /// Values other than tokens, shared by all loops; `nil` for an entry with a token.
    private let fixed: [FixedCredential?]
    private let signature: (index: Int, signer: RequestSigner, keys: FixedCredential)?
    /// The token in the form of each entry. Made once per token.
    private(set) var tokenValues: [Secret?] = []
    private var generation: UInt64 = 0

    init(_ injections: [UpstreamSettings.Injection] = [], _ rules: InjectionRules, fixed: [FixedCredential?]) {
        self.rules = rules
        self.fixed = fixed
        authenticators = injections.map { injection in
            switch injection {
            case .header(let name, let scheme, nil): ResourceRequestAuthenticatorHTTPHeader(name: name, scheme: scheme)
            case .query(let name, nil): ResourceRequestAuthenticatorQueryParameter(name: name)
            case .header, .query, .basic, .sigv4: nil
            }
        }
        signature =
            injections.indices.lazy.compactMap { index in
                guard case .sigv4(let signing) = injections[index], let keys = fixed[index] else {
                    return nil
                }
                return (index, RequestSigner(region: signing.region, service: signing.service), keys)
            }.first
    }

    func forgetToken() { tokenValues = [] }

    /// Whether the values of these entries are available. Tokens are not checked.
    func hasFixed(_ entries: EntrySet) -> Bool {
        let wanted = entries.subtracting(rules.tokens)
        guard !wanted.isEmpty else { return true }
        return fixed.indices.allSatisfy { !wanted.contains(index: $0) || fixed[$0]?.current() != nil }
    }

    func value(of index: Int, _ token: AccessToken?) -> Secret? {
        if let credential = fixed[index] {
            if case .value(let value)? = credential.current() { return value }
            return nil
        }
        guard let token else { return nil }
        if tokenValues.isEmpty || generation != token.generation { makeValues(of: token) }
        return tokenValues[index]
    }

    @inline(__always) func signer(_ entries: EntrySet) -> RequestSigner? {
        guard let signature, entries.contains(index: signature.index) else { return nil }
        return signature.signer
    }

    var signingKeys: SigningKeys? {
        if case .keys(let keys)? = signature?.keys.current() { keys } else { nil }
    }

    private func makeValues(of token: AccessToken) {
        tokenValues = authenticators.map { authenticator in
            switch authenticator?.credential(for: token) {
            case .header(_, let value)?, .query(_, let value)?: value
            case nil: nil
            }
        }
        generation = token.generation
    }
}
