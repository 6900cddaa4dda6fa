import Administration
import Configuration
import WireText

/// Example commands to copy: a request to each upstream.
struct UpstreamExamples {
    private let configuration: Configuration
    /// Addresses of `proxy.listen` as programs reach them: with `http://` or `https://`, or `unix:`.
    private let forward: [String]
    /// Addresses of the upstreams' own listeners in the same form, by the upstream's index.
    private let own: [Int: String]

    /// - Parameter addresses: bound addresses in the order of `Configuration.listeners`, with real ports instead of 0.
    init(_ configuration: Configuration, addresses: [String]) {
        self.configuration = configuration
        var forward: [String] = []
        var own: [Int: String] = [:]
        let wanted = configuration.listeners
        for (position, (address, index)) in wanted.enumerated() {
            // A name may stand for several addresses. The lists then differ in length.
            let real = addresses.count == wanted.count ? addresses[position] : address.description
            let scheme = configuration.tls(of: address, upstream: index) == nil ? "http" : "https"
            let text = Self.reachable(address, real, scheme)
            if let index { own[index] = text } else { forward.append(text) }
        }
        self.forward = forward
        self.own = own
    }

    var rules: [AdministrationSources.Rule] {
        configuration.upstreams.enumerated().map { index, upstream in
            AdministrationSources.Rule(
                upstream: upstream.host.description, client: upstream.client,
                destination: destination(upstream),
                injection: upstream.answersHere ? upstream.ownAnswer : upstream.injectionText,
                example: example(upstream, index))
        }
    }

    private func destination(_ upstream: UpstreamSettings) -> String? {
        guard !upstream.answersHere else { return "the proxy itself" }
        return upstream.url?.description ?? (upstream.host.wildcard ? nil : "https://\(upstream.host)")
    }

    private func example(_ upstream: UpstreamSettings, _ index: Int) -> String {
        var words = ["curl"]
        if !upstream.methods.isEmpty, !upstream.methods.contains("GET"), let method = upstream.methods.first {
            words += method == "HEAD" ? ["--head"] : ["-X", method]
        }
        let path = upstream.paths.first.map { $0.hasPrefix("/") ? $0 : "/" + $0 } ?? "/"
        let hasUsers = !configuration.proxy.users.isEmpty
        if let address = own[index] {
            // Programs do not treat an upstream's own listener as a proxy, so the credential is written as a request
            // field.
            if hasUsers { words += ["-H", "Proxy-Authorization: Basic …"] }
            words +=
                Self.unixPath(address).map { ["--unix-socket", $0, "http://localhost\(path)"] }
                ?? ["\(address)\(path)"]
        } else {
            if hasUsers { words += ["--proxy-user", "NAME"] }
            let host = upstream.host.description.replacing("*.", with: "any.", maxReplacements: 1)
            // curl has no option for a proxy on a Unix socket. A listener there routes origin-form requests by Host.
            let address = forward.first { Self.unixPath($0) == nil } ?? forward.first ?? ""
            words += Self.unixPath(address).map { ["--unix-socket", $0] } ?? ["-x", address]
            words.append("http://\(host)\(path)")
        }
        return words.map(Self.quoted).joined(separator: " ")
    }

    private static func unixPath(_ address: String) -> String? {
        address.hasPrefix("unix:") ? String(address.dropFirst("unix:".count)) : nil
    }

    private static func reachable(_ address: ListenAddress, _ real: String, _ scheme: String) -> String {
        guard case .tcp(let host, let port) = address else { return address.description }
        let number = port == 0 ? String(real.split(separator: ":").last ?? "0") : String(port)
        return "\(scheme)://\(ListenAddress.reachable(host: host, port: number))"
    }

    private static func quoted(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-._/:%+,".utf8.contains($0) }
        return isPlain && !word.isEmpty ? word : "'" + word.replacing("'", with: "'\\''") + "'"
    }
}

extension ListenAddress {
    /// Returns the host at which this machine reaches a listener. A program can't connect to a wildcard address.
    static func reachable(_ host: String) -> String {
        ["": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"][host] ?? host
    }

    static func reachable(host: String, port: String) -> String {
        let host = reachable(host)
        return host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}
