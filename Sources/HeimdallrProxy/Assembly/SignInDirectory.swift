import Administration
import Reports
import Synchronization

/// The way in which a person signs a client in, for the log, the proxy's answers and hooks. Set once the administration
/// listens. Any thread.
final class SignInDirectory: Sendable {
    /// Weak, because the administration refers to the proxy, which refers to this.
    private struct Reference {
        weak var administration: Administration?
    }

    private let reference = Mutex(Reference())

    func set(_ administration: Administration?) { reference.withLock { $0.administration = administration } }

    func hint(for client: String) -> SignInHint {
        guard let administration = reference.withLock({ $0.administration }) else {
            return SignInHint(
                advice: "the configuration has no admin section, so nobody can sign in; write admin: {} into it",
                url: nil)
        }
        return administration.signIn(client)
    }
}
