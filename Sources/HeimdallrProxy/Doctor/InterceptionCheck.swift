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
        var findings = await BlockingWork.run { operatorCertificates }
        guard !configuration.interceptedNames.isEmpty else { return findings }
        if let store = configuration.interception?.store { findings.append(await storedRoots(store)) }
        let files = await BlockingWork.run { try? TrustFiles.written(for: configuration, ProcessEnvironment.all) }
        guard let files else {
            return findings + [
                .skipped(Self.check, "no proxy with this configuration is running, so its root can't be tested")
            ]
        }
        findings.append(.good(Self.check, "the running proxy's root is in \(files.folder)"))
        return findings + (await handshakes(files))
    }

    private var operatorCertificates: [Finding] {
        var seen: Set<ListenerTLS> = []
        return configuration.upstreams.flatMap { upstream -> [Finding] in
            guard let files = upstream.serverCertificate, seen.insert(files).inserted else { return [] }
            return [check(files, for: upstream.host)]
        }
    }

    private func check(_ files: ListenerTLS, for host: HostPattern) -> Finding {
        if let fault = ListenerCertificate.fault(of: files) {
            return .failed(Self.check, "\(fault.file): \(fault.message)", "put a valid certificate and its key there")
        }
        let certificates = (try? FileSystem.read(files.certFile, limit: 4 << 20)).flatMap {
            try? X509Certificate.all(pem: $0)
        }
        guard let first = certificates?.first else {
            return .failed(Self.check, "\(files.certFile) can't be read", "check its owner and mode")
        }
        if first.notAfter < WallClock.now() {
            return .failed(Self.check, "the certificate in \(files.certFile) has expired", "replace it")
        }
        let name = host.wildcard ? Self.example(below: host.host.bare) : host.host.bare
        guard first.isFor(name) else {
            return .failed(
                Self.check,
                "the certificate in \(files.certFile) is not for \(host.host); it has \(ForeignText.printable(first.names))",
                "get a certificate with this name, or programs refuse it")
        }
        return .good(Self.check, "\(host) has the certificate in \(files.certFile)")
    }

    private func storedRoots(_ store: InterceptionSettings.Store) async -> Finding {
        do {
            let text = try await StoreAssembly(configuration: configuration, secrets: secrets).secret(
                store.key, "interception.key")
            let key = try TokenStoreKey(text).sealing
            return try await BlockingWork.run { [names = configuration.interceptedNames] in
                try Self.storedRoots(in: store.directory, key, names)
            }
        } catch {
            return .failed(
                Self.check, ForeignText.printable("interception: \(error)"),
                "check `directory` and `key` of `interception`")
        }
    }

    private static func storedRoots(
        in directory: String, _ key: SealingKey, _ names: InterceptedNames
    ) throws -> Finding {
        guard FileSystem.exists(directory) else {
            try PrivateDirectory.check(path: directory)
            return .good(check, "\(directory) does not exist yet; the proxy creates it at its start")
        }
        guard try AuthorityStore(path: directory, key: key).holds(names) else {
            return .warning(
                check,
                "the roots in \(directory) are for other names or expire soon: the next start replaces them",
                "after the next start, give programs the new roots: heimdallr-proxy ca export")
        }
        return .good(check, "\(directory) holds the authorities of the intercepted hosts")
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
