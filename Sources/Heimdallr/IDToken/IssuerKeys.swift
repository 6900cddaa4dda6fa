internal import Cryptography
import Synchronization
internal import WireText

/// Signing keys of an issuer, kept for a day. Fetched again, at most once a minute, if no key verifies a signature.
final class IssuerKeys: Sendable {
    private let directory: EndpointDirectory
    private let state = Mutex(State())

    private struct State {
        /// The issuer to which the other properties belong.
        var issuer: String?
        var keys: KeySet?
        var fetchedAt: ContinuousClock.Instant?
        /// Time of the last fetch, successful or not.
        var askedAt: ContinuousClock.Instant?
    }

    static let lifetime = Duration.seconds(24 * 3600)
    static let pause = Duration.seconds(60)

    init(directory: EndpointDirectory) { self.directory = directory }

    func check(_ token: SignedToken) async throws(IDTokenFault) {
        let issuer = directory.issuer()
        state.withLock { if $0.issuer != issuer { $0 = State(issuer: issuer) } }
        var candidates = kept(for: token) ?? []
        if accepts(token, candidates) { return }
        if mayAsk() {
            candidates = try await fetch().candidates(for: token)
            if accepts(token, candidates) { return }
        }
        throw candidates.isEmpty ? .unknownKey : .signature
    }

    private func accepts(_ token: SignedToken, _ keys: [VerificationKey]) -> Bool {
        keys.contains { (try? $0.accepts(token.signature, of: token.message, by: token.algorithm)) == true }
    }

    private func kept(for token: SignedToken) -> [VerificationKey]? {
        let now = directory.clock.now()
        return state.withLock { state in
            guard let fetchedAt = state.fetchedAt, now - fetchedAt < Self.lifetime else { return nil }
            return state.keys?.candidates(for: token)
        }
    }

    /// Whether the keys may be fetched now; if so, notes the time. Without keys there is no pause, because the client
    /// runs one login at a time.
    private func mayAsk() -> Bool {
        let now = directory.clock.now()
        return state.withLock { state in
            if state.keys != nil, let askedAt = state.askedAt, now - askedAt < Self.pause { return false }
            state.askedAt = now
            return true
        }
    }

    private func fetch() async throws(IDTokenFault) -> KeySet {
        do throws(DiscoveryFault) {
            let keys = try KeySet(try await document(at: try await directory.url(.keys)))
            let now = directory.clock.now()
            state.withLock { ($0.keys, $0.fetchedAt) = (keys, now) }
            return keys
        } catch {
            if case .status(404) = error { directory.doubt() }
            throw .keys(error)
        }
    }

    private func document(at url: String) async throws(DiscoveryFault) -> [UInt8] {
        do throws(DiscoveryFault) { return try await directory.response(at: url, within: directory.timeout).body } catch
        {
            guard case .network(let fault) = error else { throw error }
            throw .unreachable(.keys, ForeignText.printable(url), fault)
        }
    }
}
