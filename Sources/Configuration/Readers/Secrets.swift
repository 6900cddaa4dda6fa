import WireText

extension Section {
    /// Reads a secret: `{file: PATH}`, `{env: NAME}`, `{command: [PROGRAM, …]}`, `${NAME}`, or a literal value.
    /// - Parameters:
    ///   - orEmpty: whether `""` is a secret, too: some servers have clients with an empty one.
    ///   - isNested: whether the secret is part of another secret.
    ///   - audience: recipient of a token that the platform makes; `nil` if the operator has to name it.
    ///   - rule: reports a secret whose current value breaks it. Later values are checked when they are read.
    func secret(
        _ key: String, orEmpty: Bool = false, isNested: Bool = false, audience: String? = nil,
        rule: InjectedValue.Rule? = nil
    ) -> SecretSource? {
        let shape = isNested ? .reference("secret") : Self.secretShape
        tell(key, orEmpty ? .any([shape, .value(.words([""]))]) : shape)
        guard let node = node(key) else { return nil }
        if orEmpty, case .scalar(let scalar) = node.content, scalar.text.isEmpty, !scalar.plain, !scalar.verbatim {
            return .literal("")
        }
        return secret(key, of: node, audience: audience, rule: rule)
    }

    /// - Parameter node: the key's value, or an element of that value.
    func secret(
        _ key: String, of node: Node, audience: String? = nil, rule: InjectedValue.Rule? = nil
    ) -> SecretSource? {
        switch node.content {
        case .sequence:
            error(key, "write {file: PATH} or {env: NAME}, not a list")
            return nil
        case .mapping(let entries):
            let source = secret(key, entries, at: node.position, rule)
            guard case .remote(let remote) = source else { return source }
            return .remote(addressed(remote, key, usual: audience))
        case .scalar(let scalar):
            if !scalar.verbatim, let name = Substitution.soleName(in: scalar.text) {
                return environmentSecret(name, key, at: node.position, rule)
            }
            guard let text = text(node, key, isSecret: true) else { return nil }
            if diagnostics.isForPrograms, let name = Substitution.soleName(in: text) { return .environment(name: name) }
            guard !text.isEmpty else {
                error(key, "the secret is empty: write {file: PATH} or {env: NAME}")
                return nil
            }
            if !scalar.text.contains("${") {
                warn(key, "the configuration contains a secret: write {file: PATH} or {env: NAME} instead")
            }
            judge(Array(text.utf8), "the secret", rule, key, at: node.position, warnsOfBlanks: false)
            return .literal(text)
        }
    }

    private func secret(
        _ key: String, _ entries: [Node.Entry], at position: Position, _ rule: InjectedValue.Rule?
    ) -> SecretSource? {
        let inner = Section(entries, path: shownName(of: key), pattern: "secret", at: position, diagnostics)
        let kinds = Self.secretKinds.filter(inner.has)
        guard !kinds.isEmpty else {
            error(key, "write {file: PATH} or {env: NAME}")
            return nil
        }
        defer { inner.finish() }
        let (file, variable, words, refresh) = inner.secretParts()
        let remote = inner.remoteSecret(refresh: refresh)
        guard kinds.count == 1 else {
            error(
                key,
                "write either `\(kinds.dropLast().joined(separator: "`, `"))` or `\(kinds[kinds.count - 1])`, not both")
            return nil
        }
        if !inner.has("vault") {
            inner.refuse(
                "refresh", without: "command",
                saying: "this belongs to `command` and `vault`: other secrets are read at each use")
        }
        if !words.isEmpty { return .command(words, refresh: refresh) }
        if let remote { return .remote(remote) }
        if let file { return fileSecret(file, key, at: inner.position(of: "file"), rule) }
        if let variable { return environmentSecret(variable, key, at: inner.position(of: "env"), rule) }
        return nil
    }

    static let secretKinds = ["file", "env", "command", "vault", "spiffe", "github_actions"]

    static var secretShape: Shape {
        .named(
            "secret",
            .any([
                .value(of: Grammar.nonempty),
                .section { section in
                    section.outline?.alternatives = secretKinds
                    _ = section.secretParts()
                    _ = section.remoteSecret(refresh: .zero)
                },
            ]))
    }

    private func secretParts() -> (file: String?, variable: String?, words: [String], refresh: Duration) {
        let file = value("file", Grammar.path)
        let variable = value("env") { text throws(BadValue) in
            try Grammar.checked(
                text, Substitution.isName(text),
                BadValue("write the name of an environment variable", matching: Substitution.namePattern))
        }
        let words = command("command", isSearched: true)
        var refresh = Duration.seconds(300)
        read("refresh", into: &refresh, Grammar.duration(.seconds(1)...Self.day))
        return (file, variable, words, refresh)
    }

    private func environmentSecret(
        _ name: String, _ key: String, at position: Position, _ rule: InjectedValue.Rule?
    ) -> SecretSource? {
        if diagnostics.isForPrograms { return .environment(name: name) }
        guard let value = diagnostics.environment[name], !value.isEmpty else {
            let isSet = diagnostics.environment[name] != nil
            let fault = isSet ? "is empty: put the secret into it" : "is not set: set it"
            diagnostics.error(position, "\(label(key))the environment variable \(name) \(fault)")
            return nil
        }
        judge(Array(value.utf8), "the secret in \(name)", rule, key, at: position)
        return .environment(name: name)
    }

    /// Reports a secret that breaks the rule, a secret in a wrong form, and blanks at the ends of a one-line secret,
    /// which the proxy sends. Only the first of these faults. The secrets of `store` may have several lines and blanks.
    private func judge(
        _ content: [UInt8], _ what: String, _ rule: InjectedValue.Rule?, _ key: String, at position: Position,
        warnsOfBlanks: Bool = true
    ) {
        let isStore = pattern == "store"
        if let fault = rule?(content) {
            error(key, "the secret can't go onto a request: \(fault)")
        } else if let form = SecretForm(content, hasLines: isStore) {
            diagnostics.warn(position, "\(label(key))\(what) \(form)")
        } else if warnsOfBlanks, !isStore {
            func isText(_ byte: UInt8) -> Bool { ![0x09, 0x0A, 0x0D, 0x20].contains(byte) }
            guard let first = content.firstIndex(where: isText), let last = content.lastIndex(where: isText),
                !content[first...last].contains(0x0A), first != 0 || last + 1 != content.count
            else { return }
            diagnostics.warn(
                position,
                "\(label(key))\(what) \(first == 0 ? "ends" : "begins") with a space or a line end, which is sent as "
                    + "part of the secret: remove it")
        }
    }

    /// Removes a final line end, as the proxy does when it reads a secret from a file.
    private static func withoutLineEnd(_ content: [UInt8]) -> ArraySlice<UInt8> {
        guard content.last == 0x0A else { return content[...] }
        return content.dropLast().last == 0x0D ? content.dropLast(2) : content.dropLast()
    }

    /// Warns of a file that other users of this machine may read.
    func warnOfReaders(_ path: String, label: String, at position: Position) {
        guard !diagnostics.isForPrograms, let mode = Files.modeForOthers(path) else { return }
        diagnostics.warn(
            position,
            "\(label)other users may read the file \(Section.shown(path)) too (mode \(mode)): `chmod 600` it, or 640 "
                + "if root owns it and the proxy's group reads it")
    }

    private func fileSecret(
        _ written: String, _ key: String, at position: Position, _ rule: InjectedValue.Rule?
    ) -> SecretSource? {
        let path = diagnostics.resolve(path: written)
        if diagnostics.isForPrograms { return .file(path: path) }
        do throws(BadValue) {
            let content = try Files.read(path, limit: 64 * 1024)
            guard content.contains(where: { $0 != 0x0A && $0 != 0x0D }) else {
                throw BadValue("the file is empty: put the secret into it")
            }
            judge(
                Array(Self.withoutLineEnd(content)), "the secret in \(Section.shown(path))", rule, key,
                at: position)
        } catch {
            diagnostics.error(
                position, "\(label(key))can't read the secret file \(Section.shown(path)): \(error.message)",
                awaiting: path)
            return nil
        }
        warnOfReaders(path, label: label(key), at: position)
        return .file(path: path)
    }

    /// Reads a text that may be shown, such as a user name. Accepts a secret's source, too: some user names are keys.
    func textOrSecret(_ key: String, rule: @escaping InjectedValue.Rule) -> SecretSource? {
        tell(key, Self.secretShape)
        guard let node = node(key), case .scalar(let scalar) = node.content, !scalar.verbatim,
            Substitution.soleName(in: scalar.text) == nil
        else { return secret(key, rule: rule) }
        guard let text = value(key, Grammar.nonempty) else { return nil }
        judge(Array(text.utf8), "the value", rule, key, at: node.position, warnsOfBlanks: false)
        return .literal(text)
    }

    /// Reports an invalid key of a store before the store is opened. A valid key has 32 bytes, raw or in base64. White
    /// space around the base64 is ignored.
    func checkStoreKey(_ source: SecretSource, _ name: String = "key") {
        guard !diagnostics.isForPrograms, let text = content(of: source), text.count != 32 else { return }
        // Only counts the decoded bytes, so that no copy of the key stays in memory.
        var count = 0
        guard !Base64.decode(text.span.trimmed, as: .either, to: { _ in count += 1 }) || count != 32 else { return }
        error(
            name,
            "this is not a key of 32 bytes, raw or in base64: make one with `heimdallr-proxy keygen --output FILE`")
    }

    /// Returns the secret's current content; `nil` for an unreadable file, which was already reported, and for a
    /// command, because a check of the configuration runs no commands.
    private func content(of source: SecretSource) -> [UInt8]? {
        switch source {
        case .literal(let text): Array(text.utf8)
        case .environment(let name): diagnostics.environment[name].map { Array($0.utf8) }
        case .file(let path): try? Files.read(path, limit: 64 * 1024)
        case .command, .remote: nil
        }
    }
}
