import HTTPMessage

extension Section {
    /// Reads the next proxy: a URL, a word, or `{url: …, auth: …}`.
    /// - Parameter usual: word for the default; `nil`: another setting decides it.
    func nextProxy(_ key: String, into target: inout NextProxy, usual: String? = "none") {
        let found = either(key) { text throws(BadValue) in
            try Grammar.nextProxy(text)
        } or: {
            $0.authenticatedProxy()
        }
        if let usual { tell(key, usually: usual) }
        guard let found else { return }
        target = found
        if case .url(let url, .basic) = found, !isMapping(key) { warnOfPassword(key, url) }
    }

    private func authenticatedProxy() -> NextProxy? {
        defer { finish() }
        let url = value("url", Grammar.nextProxyURL)
        need("url", saying: "\(path): write the `url` of the next proxy, such as http://proxy.example.com:3128")
        var method = NextProxyLogin.Method.basic
        read("auth", into: &method, Grammar.word)
        var identity = KerberosIdentity()
        check(by: "auth", method, among: NextProxyLogin.Method.allCases.map { ($0, [$0.rawValue]) }, usual: .basic) {
            if $0 == .negotiate {
                identity = kerberosIdentity()
            } else {
                refuse(["keytab", "principal"], saying: "this is for `auth: negotiate`: write that, or leave it out")
            }
        }
        guard let url, let parts = try? WebURL(url, allowing: .userInfo) else { return nil }
        check(parts, method)
        warnOfPassword("url", url)
        return .url(url, NextProxyLogin(method, identity))
    }

    private func check(_ url: WebURL, _ method: NextProxyLogin.Method) {
        switch (method, url.userInfo) {
        case (.digest, nil), (.ntlm, nil):
            error("url", "`auth: \(method)` needs a name and password: write http://NAME:PASSWORD@HOST:PORT")
        case (.negotiate, .some):
            error("url", "`auth: negotiate` uses no name and password: leave them out")
        case (.negotiate, nil):
            if case .name = url.authority.host { return }
            error("url", "Kerberos knows the proxy by its name, not by an address: write the name")
        default: break
        }
    }

    private func kerberosIdentity() -> KerberosIdentity {
        KerberosIdentity(keytab: keytab("keytab"), principal: value("principal", Grammar.printable))
    }

    /// Reads the path of a keytab, whose first byte is 5.
    private func keytab(_ key: String) -> String? {
        guard let written = value(key, Grammar.path) else { return nil }
        let path = diagnostics.resolve(path: written)
        do throws(BadValue) {
            guard try Files.read(path, limit: 1 << 20).first == 5 else {
                throw BadValue("the file is no keytab of Kerberos", quotes: false)
            }
        } catch {
            diagnostics.error(
                position(of: key), "\(label(key))can't use \(Self.shown(path)): \(error.message)", awaiting: path)
            return nil
        }
        warnOfReaders(path, label: label(key), at: position(of: key))
        return path
    }

    private func warnOfPassword(_ key: String, _ url: String) {
        guard let userinfo = (try? WebURL(url, allowing: .userInfo))?.userInfo, userinfo.contains(":"),
            !comesFromEnvironment(key)
        else { return }
        warn(key, "the configuration contains a password: write ${NAME} instead")
    }
}
