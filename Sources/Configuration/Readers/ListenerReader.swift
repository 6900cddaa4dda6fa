/// Reads the addresses that programs connect to.
extension Section {
    /// One listener or a list of them, each as text or as `{unix: PATH, mode: "0660"}`, with their positions.
    func listeners(_ key: String) -> [Listener]? {
        tell(key, .oneOrMore(Self.listenerShape, 1...Int.max))
        guard let node = node(key) else { return nil }
        var nodes = [node]
        if case .sequence(let elements) = node.content { nodes = elements }
        var listeners: [Listener] = []
        for element in nodes {
            guard let address = listenAddress(element, key) else { continue }
            if listeners.contains(where: { $0.address == address }) {
                diagnostics.error(element.position, label(key, element) + "this value stands here twice")
            } else {
                listeners.append(.init(address: address, position: element.position, name: label(key, element)))
            }
        }
        return listeners
    }

    /// A single listener.
    func listener(_ key: String) -> Listener? {
        tell(key, Self.listenerShape)
        guard let node = node(key), let address = listenAddress(node, key) else { return nil }
        return .init(address: address, position: node.position, name: label(key, node))
    }

    private func listenAddress(_ node: Node, _ key: String) -> ListenAddress? {
        guard case .mapping(let entries) = node.content else { return value(of: node, key, Grammar.listener) }
        let inner = Section(entries, path: name(of: key), pattern: "listener", at: node.position, diagnostics)
        defer { inner.finish() }
        let (path, mode) = inner.socket(saying: label(key, node))
        guard let path, mode != nil || !inner.has("mode") else { return nil }
        return .unix(path: path, mode: mode)
    }

    private static var listenerShape: Shape {
        .named(
            "listener", .any([.value(of: Grammar.listener), .section { _ = $0.socket(saying: "") }]))
    }

    private func socket(saying label: String) -> (path: String?, mode: UInt16?) {
        let path = value("unix") { text throws(Misfit) in try Grammar.socketPath(text) }
        let mode = value("mode", Grammar.fileMode)
        need("unix", saying: label + "write host:port, or {unix: PATH, mode: \"0660\"}")
        return (path, mode)
    }
}

extension Grammar {
    /// Path of a Unix socket: sockaddr_un of unix(7) holds 108 bytes, one of them zero.
    static func socketPath(_ text: some StringProtocol) throws(Misfit) -> String {
        guard text.hasPrefix("/") else { throw Misfit("write an absolute path", fits: .text(matching: "^/")) }
        guard text.utf8.count <= 107, !text.utf8.contains(0) else { throw Misfit("write a path of at most 107 bytes") }
        return String(text)
    }

    /// Permissions in octal digits, as for chmod(1).
    static func fileMode(_ text: String) throws(Misfit) -> UInt16 {
        var digits = text[...]
        if digits.hasPrefix("0o") { digits = digits.dropFirst(2) }
        guard (3...4).contains(digits.utf8.count), let mode = UInt16(digits, radix: 8), mode <= 0o777,
            mode & 0o600 == 0o600
        else {
            // YAML readers with types read 0660 as 660, and 0o660 as 432.
            throw Misfit(
                "write permissions in octal such as \"0600\", \"0660\" or \"0666\"",
                fits: .any([.text(matching: "^(0o)?[0-7]{3,4}$"), .integer(0o600...777)]))
        }
        return mode
    }
}
