/// Reads `proxy.users` and the callers of an upstream.
extension Section {
    /// Names and their secrets.
    func users() -> [String: SecretSource] {
        tell("users", .names(Grammar.userNameKind, Self.secretShape))
        guard let node = node("users") else { return [:] }
        guard case .mapping(let entries) = node.content else {
            error("users", "write a mapping of names to secrets, not \(node.kind)")
            return [:]
        }
        let inner = Section(entries, path: name(of: "users"), pattern: "proxy.users", at: node.position, diagnostics)
        var users: [String: SecretSource] = [:]
        for entry in entries {
            guard Grammar.isUserName(entry.key) else {
                diagnostics.error(
                    entry.keyPosition,
                    "\(inner.path): write a name without colons and control characters, not "
                        + "\"\(Section.shown(entry.key))\"")
                continue
            }
            // The name counts even when its secret is invalid, so that one mistake gives one message.
            users[entry.key] = inner.secret(entry.key) ?? .literal("")
        }
        return users
    }

    /// The section `callers` of an upstream.
    func callers() -> Callers {
        defer { finish() }
        var callers = Callers()
        callers.users = list("users", Grammar.nonempty) ?? []
        callers.uids = (list("uids", Grammar.integer(0...0xFFFF_FFFE)) ?? []).map { UInt32($0) }
        let listeners = listeners("listeners") ?? []
        for listener in listeners where listener.tls != nil {
            diagnostics.error(
                listener.position, listener.name + "`tls` stands at `proxy.listen`: write the address alone")
        }
        callers.listeners = listeners.map(\.address)
        callers.certificates = list("certificates", Grammar.certificateName) ?? []
        let keys = ["users", "uids", "listeners", "certificates"]
        need(
            "users", "uids", "listeners", "certificates",
            saying: "\(path): write `users`, `uids`, `listeners` or `certificates`, or leave it out for everybody")
        for key in keys where isEmptyList(key) { error(key, "nobody would fit: write at least one") }
        return callers
    }
}

extension Grammar {
    /// A name in Basic credentials, in front of the colon (RFC 7617, section 2).
    static let userNameKind = ValueKind.text(matching: #"^[^:\u0000-\u001f\u007f]+$"#)

    /// A subject or an alternative name of a certificate.
    static func certificateName(_ text: String) throws(Misfit) -> String {
        let kinds = ["DNS:", "URI:", "email:"]
        let isAlternative = kinds.contains { text.hasPrefix($0) && text.utf8.count > $0.utf8.count }
        guard isAlternative || text.contains("=") && !text.hasPrefix("/") else {
            throw Misfit(
                "write a subject such as CN=worker,O=Example, or DNS:…, URI:… or email:…",
                fits: .text(matching: "^((DNS|URI|email):.+|[^/].*=.*)$"))
        }
        return text
    }

    static func isUserName(_ text: String) -> Bool {
        !text.isEmpty && text.unicodeScalars.allSatisfy { $0 != ":" && $0.value >= 0x20 && $0.value != 0x7F }
    }
}
