import Configuration
import Cryptography
import CurlTransport
import FileSystem
import HTTPMessage
import Heimdallr
import Proxy
import Reactor
import WireText

/// Checks the interception of TLS: the proxy's authorities, the operator's certificates, and handshakes through the
/// running proxy.
struct InterceptionCheck: Sendable {
    let configuration: Configuration
    let secrets: SecretCache
    let loop: EventLoop

    private static let check = "intercept"
    /// Maximum number of hosts for which a handshake is made.
    private static let maxHosts = 4

    func findings() async -> [Finding] {
        guard configuration.opensTLS else { return [] }
        var findings = await BlockingWork.run { [uses = configuration.keyUses] in Self.certificates(uses) }
        guard !configuration.interceptedNames.isEmpty else { return findings }
        findings += await storedRoots()
        let files = await BlockingWork.run { try? TrustFiles.written(for: configuration, ProcessEnvironment.all) }
        guard let files else {
            return findings + [
                .skipped(Self.check, "no proxy with this configuration is running, so its root can't be tested")
            ]
        }
        findings.append(.good(Self.check, "the running proxy's root is in \(files.folder)"))
        return findings + (await handshakes(files))
    }

    /// The operator's own certificates, as `check` judges them. Programs refuse one with a fault.
    private static func certificates(_ uses: KeyUses) -> [Finding] {
        var uses = uses
        uses.all.removeAll { if case .server = $0.content { false } else { true } }
        let keys = KeyCheck(uses, environment: [:])
        let faults = keys.problems + keys.warnings
        return keys.findings.map { .good(check, $0.message) }
            + faults.map {
                .failed(
                    check, ForeignText.printable($0.message), "put a valid certificate for this host there, and its key"
                )
            }
    }

    private func storedRoots() async -> [Finding] {
        guard let directory = configuration.interception?.store?.directory else { return [] }
        do {
            try AuthorityStore.check(configuration)
            guard FileSystem.exists(directory) else {
                return [.good(Self.check, "\(directory) does not exist yet; the proxy creates it at its start")]
            }
            let store = try await AuthorityStore.of(configuration, secrets)
            let isFit = try await BlockingWork.run { [names = configuration.interceptedNames] in
                try store?.holds(names) ?? true
            }
            return isFit
                ? [.good(Self.check, "\(directory) holds the authorities of the intercepted hosts")]
                : [
                    .warning(
                        Self.check,
                        "the roots in \(directory) are for other names or expire soon: the next start replaces them",
                        "after the next start, give programs the new roots: heimdallr-proxy ca export")
                ]
        } catch {
            let text = ForeignText.printable("interception: \(error)")
            return [.failed(Self.check, text, "check `directory` and `key` of `interception`")]
        }
    }

    /// Returns an example of a host that a wildcard covers.
    private static func example(below domain: String) -> String { "heimdallr-proxy-doctor.\(domain)" }

    private var examples: [Origin] {
        var origins: [Origin] = []
        for upstream in configuration.upstreams where upstream.intercepts && upstream.serverCertificate == nil {
            let host = upstream.host
            let name = host.wildcard ? Self.example(below: host.host.description) : host.host.description
            let origin = Origin(scheme: .https, host: name, port: host.port ?? 443)
            if !origins.contains(origin) { origins.append(origin) }
        }
        return Array(origins.prefix(Self.maxHosts))
    }

    private func handshakes(_ files: TrustFiles) async -> [Finding] {
        guard let authority = ExecCommand.authority(configuration) else {
            return [.skipped(Self.check, "the proxy has no listener without TLS whose port is known")]
        }
        guard configuration.proxy.users.isEmpty else {
            return [.skipped(Self.check, "the proxy requires a user, so no handshake is made")]
        }
        var options = PoolOptions(connectTimeout: ConnectionCheck.limit, maxConnections: 1, TLSSettings(), anchors: nil)
        options.trustAnchors = .only(file: files.rootsFile)
        options.nextProxy = .url("http://\(authority)")
        return await Checks.all(examples) { [options] in await handshake($0, options) }
    }

    /// Makes a handshake through the proxy. With `Max-Forwards: 0` the proxy itself answers (RFC 9110, section 7.6.2).
    private func handshake(_ origin: Origin, _ options: PoolOptions) async -> Finding {
        var request = BufferedClient.Request(origin: origin)
        request.method = "OPTIONS"
        request.target = "/"
        request.fields = [("User-Agent", "\(Product.userAgent) doctor"), ("Max-Forwards", "0")]
        request.timeout = ConnectionCheck.limit
        let begin = ContinuousClock.now
        do throws(BufferedClient.Failure) {
            _ = try await BufferedClient(options: options, loop: loop).send(request)
            return .good(
                Self.check, "the proxy opens TLS for \(origin.host), with a certificate of its root",
                after: begin.duration(to: .now))
        } catch {
            let cause = if case .transport(let fault) = error { FailureCause.text(fault) } else { "no answer in time" }
            return .failed(
                Self.check, "no TLS for \(origin.host) through the running proxy: \(cause)",
                "read the proxy's log, and run heimdallr-proxy reload if the configuration has changed")
        }
    }
}
