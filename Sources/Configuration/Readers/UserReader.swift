// Readers of `proxy.users` and of an upstream's `callers`.
extension Section {
    func users() -> [String: SecretSource] {
        let users = mapping("users", to: "secrets", Self.secretShape, name: Grammar.userName) { entry, inner in
            // A name with an invalid secret still counts for other rules, so that a mistake gives only one message.
            inner.secret(entry.key, rule: InjectedValue.password) ?? .literal("")
        }
        return Dictionary(users.map { ($0.name, $0.value) }) { $1 }
    }

    func callers() -> Callers {
        defer { finish() }
        var callers = Callers()
        callers.users = list("users", Grammar.nonempty) ?? []
        callers.uids = (list("uids", Grammar.integer(0...0xFFFF_FFFE)) ?? []).map { UInt32($0) }
        let listeners = listeners("listeners") ?? []
        for listener in listeners where listener.tls != nil {
            diagnostics.error(
                listener.position, listener.name + "`tls` belongs to `proxy.listen`: write only the address here")
        }
        callers.listeners = listeners.map(\.address)
        callers.certificates = list("certificates", Grammar.certificateName) ?? []
        need(
            "users", "uids", "listeners", "certificates",
            saying: "\(path): write `users`, `uids`, `listeners` or `certificates`, or leave it out to admit all")
        for key in ["users", "uids", "listeners", "certificates"] where isEmptyList(key) {
            error(key, "an empty list admits nobody: write at least one")
        }
        return callers
    }
}

extension Grammar {
    /// A subject or a subject alternative name of a certificate.
    static func certificateName(_ text: String) throws(BadValue) -> String {
        let kinds = ["DNS:", "URI:", "email:"]
        let isAlternative = kinds.contains { text.hasPrefix($0) && text.utf8.count > $0.utf8.count }
        return try checked(
            text, isAlternative || text.contains("=") && !text.hasPrefix("/"),
            BadValue(
                "write a subject such as CN=worker,O=Example, or DNS:…, URI:… or email:…",
                matching: "^((DNS|URI|email):.+|[^/].*=.*)$"))
    }

    /// A user name in Basic credentials, the part before the colon (RFC 7617, section 2).
    static func userName(_ text: String) throws(BadValue) -> String {
        try checked(
            text, !text.isEmpty && text.utf8.allSatisfy { $0 != UInt8(ascii: ":") && $0 >= 0x20 && $0 != 0x7F },
            BadValue("write a name without colons and control characters", matching: #"^[^:\u0000-\u001f\u007f]+$"#))
    }
}
