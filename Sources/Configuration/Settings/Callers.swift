/// The callers that may use an upstream. A caller must match each list that is not empty.
public struct Callers: Sendable, Equatable {
    /// Names of `proxy.users`.
    public var users: [String] = []
    /// User IDs of the processes that connect to a Unix socket.
    public var uids: [UInt32] = []
    /// Addresses of `proxy.listen`. A caller at the upstream's own listener matches every list of addresses.
    public var listeners: [ListenAddress] = []
    /// Names in clients' certificates: subjects (`CN=worker,O=Example`, RFC 2253) and alternative names
    /// (`DNS:worker.example`, `URI:spiffe://example/worker`, `email:a@example`).
    public var certificates: [String] = []

    public var isEmpty: Bool { users.isEmpty && uids.isEmpty && listeners.isEmpty && certificates.isEmpty }

    /// Whether a caller can match both this value and `other`.
    func overlaps(_ other: Callers) -> Bool {
        let (mine, theirs) = (listeners.map(\.endpoint), other.listeners.map(\.endpoint))
        guard Self.overlap(users, other.users), Self.overlap(uids, other.uids), Self.overlap(mine, theirs),
            Self.overlap(certificates, other.certificates)
        else { return false }
        guard !uids.isEmpty || !other.uids.isEmpty else { return true }
        // Only callers on a Unix socket have a user ID.
        let both = mine.isEmpty ? theirs : theirs.isEmpty ? mine : mine.filter(theirs.contains)
        return both.isEmpty || both.contains(where: \.isUnix)
    }

    private static func overlap<Value: Equatable>(_ one: [Value], _ other: [Value]) -> Bool {
        one.isEmpty || other.isEmpty || one.contains(where: other.contains)
    }
}

extension Callers: CustomStringConvertible {
    /// `users alice, bob; uids 1000`; empty if all callers match.
    public var description: String {
        var parts: [String] = []
        if !users.isEmpty { parts.append("users \(users.joined(separator: ", "))") }
        if !uids.isEmpty { parts.append("uids \(uids.map(String.init).joined(separator: ", "))") }
        if !listeners.isEmpty { parts.append("listeners \(listeners.map(\.description).joined(separator: ", "))") }
        if !certificates.isEmpty { parts.append("certificates \(certificates.joined(separator: " or "))") }
        return parts.joined(separator: "; ")
    }
}
