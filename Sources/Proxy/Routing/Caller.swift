import Configuration
import TLSServer

/// The sender of a request, with all properties that rules can check.
struct Caller: Equatable {
    var user: String?
    /// User ID of the process at the other end of a Unix socket.
    var uid: UInt32?
    /// The listener that received the request; `nil` for an upstream's own listener.
    var listener: ListenAddress?
    /// Certificate of the program, if the listener verifies certificates.
    var certificate: ClientCertificate?

    /// Whether it has a name.
    var isKnown: Bool { user != nil || uid != nil || certificate != nil }
    /// Name for the log; `nil` for a caller of which only the address is known.
    var name: String? { user ?? certificate?.name ?? uid.map { "uid \($0)" } }

    /// Text that only the same caller has, at whichever listener; empty for a caller of which only the address is known.
    var identity: String {
        if let user { return "user \(user)" }
        if let certificate {
            return (["certificate", certificate.subject] + certificate.names).joined(separator: "\n")
        }
        return uid.map { "uid \($0)" } ?? ""
    }
}

struct CallerRule: Sendable {
    private let users: Set<String>
    private let uids: Set<UInt32>
    private let listeners: Set<ListenAddress>
    private let certificates: Set<String>

    /// Creates the rule of `callers`; `nil` if every caller is admitted.
    init?(_ settings: Callers) {
        guard !settings.isEmpty else { return nil }
        users = Set(settings.users)
        uids = Set(settings.uids)
        listeners = Set(settings.listeners.map(\.endpoint))
        certificates = Set(settings.certificates)
    }

    func admits(_ caller: Caller) -> Bool {
        if !users.isEmpty {
            guard let user = caller.user, users.contains(user) else { return false }
        }
        if !uids.isEmpty {
            guard let uid = caller.uid, uids.contains(uid) else { return false }
        }
        if !certificates.isEmpty {
            guard let shown = caller.certificate,
                certificates.contains(shown.subject) || shown.names.contains(where: certificates.contains)
            else { return false }
        }
        // A request to an upstream's own listener has no `caller.listener`, and is admitted.
        guard !listeners.isEmpty, let listener = caller.listener else { return true }
        return listeners.contains(listener)
    }
}
