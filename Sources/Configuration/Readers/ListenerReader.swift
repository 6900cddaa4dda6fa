/// Reads listeners: their addresses, permissions and TLS settings.
extension Section {
    /// Reads a listener or a list of listeners. Each is a text, `{unix: PATH, mode: "0660"}` or
    /// `{address: HOST:PORT, tls: …}`.
    func listeners(_ key: String) -> [Listener]? {
        distinct(key, Self.listenerShape, 1...Int.max, by: \.address) { listener($0, key) }
    }

    /// Reads a single listener.
    func listener(_ key: String) -> Listener? {
        tell(key, Self.listenerShape)
        return node(key).flatMap { listener($0, key) }
    }

    private func listener(_ node: Node, _ key: String) -> Listener? {
        let label = label(key, node)
        guard case .mapping(let entries) = node.content else {
            return value(of: node, key, Grammar.listener).map {
                Listener(address: $0, position: node.position, name: label)
            }
        }
        let inner = Section(entries, path: shownName(of: key), pattern: "listener", at: node.position, diagnostics)
        defer { inner.finish() }
        let found = inner.listenerKeys(saying: label)
        guard let address = found.address else { return nil }
        return Listener(address: address, position: node.position, name: label, tls: found.tls)
    }

    private static var listenerShape: Shape {
        .named(
            "listener", .any([.value(of: Grammar.listener), .section { _ = $0.listenerKeys(saying: "") }]))
    }

    private func listenerKeys(saying label: String) -> (address: ListenAddress?, tls: ListenerTLS?) {
        let path = value("unix") { text throws(BadValue) in try Grammar.socketPath(text) }
        let mode = value("mode", Grammar.fileMode)
        let address = value("address", Grammar.tcpListener)
        let tls = section("tls")?.listenerTLS()
        need(
            "unix", "address",
            saying: label + "write host:port, {unix: PATH, mode: \"0660\"}, or {address: HOST:PORT, tls: …}")
        guard has("unix") else {
            refuse("mode", with: "address", saying: "this applies to Unix sockets: write `unix` too, or leave it out")
            return (address, tls)
        }
        for key in ["address", "tls"] where has(key) {
            error(key, "a Unix socket has neither `address` nor `tls`: write two listeners")
        }
        guard let path, mode != nil || !has("mode") else { return (nil, nil) }
        return (.unix(path: path, mode: mode), nil)
    }

    /// Reads the section `tls` of a listener.
    private func listenerTLS() -> ListenerTLS? {
        defer { finish() }
        let certificate = readableFile("cert_file")
        let key = readableFile("key_file")
        let clients = trustAnchorsFile("client_ca_file")
        need("cert_file", saying: "\(path): a listener shows a certificate: write `cert_file`")
        need("key_file", saying: "\(path): a certificate needs its key: write `key_file`")
        if let certificate, let key {
            warnOfReaders(key, label: label("key_file"), at: position(of: "key_file"))
            note(.listener(certificate: certificate, key: key), at: "cert_file")
        }
        // An unreadable file still counts for other rules, so that a mistake gives only one message.
        let clientCA = has("client_ca_file") ? clients ?? "" : nil
        return ListenerTLS(certFile: certificate ?? "", keyFile: key ?? "", clientCAFile: clientCA)
    }
}

extension Grammar {
    /// Path of a Unix socket: at most 107 bytes, because `sockaddr_un` has 108 with a final zero (unix(7)).
    static func socketPath(_ text: some StringProtocol) throws(BadValue) -> String {
        guard text.hasPrefix("/") else { throw BadValue("write an absolute path", matching: "^/") }
        guard text.utf8.count <= 107, !text.utf8.contains(0) else {
            throw BadValue("write a path of at most 107 bytes")
        }
        return String(text)
    }

    /// File permissions in octal digits, as for chmod(1). The owner must be able to read and write.
    static func fileMode(_ text: String) throws(BadValue) -> UInt16 {
        var digits = text[...]
        if digits.hasPrefix("0o") { digits = digits.dropFirst(2) }
        guard (3...4).contains(digits.utf8.count), let mode = UInt16(digits, radix: 8), mode <= 0o777,
            mode & 0o600 == 0o600
        else {
            // Editors read 0660 without quotes as the number 660, and 0o660 as 432.
            throw BadValue(
                "write permissions in octal such as \"0600\", \"0660\" or \"0666\"",
                fits: .any([.text(matching: "^(0o)?[0-7]{3,4}$"), .integer(0o600...777)]))
        }
        return mode
    }
}
