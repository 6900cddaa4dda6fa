import Configuration

/// Who sends a request, as far as rules ask.
struct Caller: Equatable {
    /// Of `proxy.users`.
    var user: String?
    /// Of the process at the other end of a Unix socket.
    var uid: UInt32?
    /// Where it came in; `nil`: on an upstream's own listener.
    var listener: ListenAddress?
}

/// Whom one rule is for.
struct CallerRule: Sendable {
    private let users: Set<String>
    private let uids: Set<UInt32>
    private let listeners: Set<ListenAddress>

    /// `nil`: it is for everybody.
    init?(_ settings: Callers) {
        guard !settings.isEmpty else { return nil }
        users = Set(settings.users)
        uids = Set(settings.uids)
        listeners = Set(settings.listeners.map(\.place))
    }

    func admits(_ caller: Caller) -> Bool {
        if !users.isEmpty {
            guard let user = caller.user, users.contains(user) else { return false }
        }
        if !uids.isEmpty {
            guard let uid = caller.uid, uids.contains(uid) else { return false }
        }
        // An upstream's own listener leads to nothing else.
        guard !listeners.isEmpty, let listener = caller.listener else { return true }
        return listeners.contains(listener)
    }
}
