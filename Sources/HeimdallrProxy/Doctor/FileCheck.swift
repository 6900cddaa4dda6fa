import Administration
import Configuration
import CurlTransport
import FileSystem
import Heimdallr
import Reactor
import WireText

/// Checks the secrets, the token store and the interception of the configuration.
struct FileCheck: Sendable {
    let configuration: Configuration
    let secrets: SecretCache
    /// The clients named on the command line, or all.
    let clients: [ClientSettings]
    let upstreams: [UpstreamSettings]
    /// Whether to check also the store, the interception, and the secrets that belong to no client and no upstream.
    let isWhole: Bool
    let loop: EventLoop

    /// Maximum time to read one secret.
    private static let limit = Duration.seconds(10)

    func diagnosis() async -> Diagnosis {
        var findings: [Finding] = []
        for (name, source) in sources { findings.append(await check("of \(name)", source)) }
        if isWhole {
            findings += await store()
            findings.append(await EnclosureCheck.finding(configuration))
            findings += await InterceptionCheck(configuration: configuration, secrets: secrets, loop: loop).findings()
        }
        if findings.isEmpty { findings = [.good("secrets", "the configuration has no secrets")] }
        return Diagnosis(kind: .configuration, name: "configuration", findings: findings)
    }

    /// Each source of a secret once, with the name of the first client, upstream or key that uses the source.
    private var sources: [(name: String, source: SecretSource)] {
        let all =
            clients.flatMap { client in client.allSecrets.map { ("client \(client.name)", $0) } }
            + upstreams.flatMap { upstream in upstream.secrets.map { ("upstream \(upstream.host)", $0) } }
            + (isWhole ? configuration.commonSecrets.map { ($0.name, $0.source) } : [])
        var seen: Set<SecretSource> = []
        return all.filter { seen.insert($0.1).inserted }
    }

    private func check(_ name: String, _ source: SecretSource) async -> Finding {
        if case .literal = source {
            let advice = "move the secret to a separate file: {file: PATH}"
            return .warning("secret", "\(name) is written in the configuration itself", advice)
        }
        let secret = secrets.secret(source)
        let read = await Checks.value(within: Self.limit) { () -> Result<Secret, SecretProviderError> in
            do { return .success(try await secret.secret()) } catch {
                return .failure(error as? SecretProviderError ?? SecretProviderError("it can't be read"))
            }
        }
        let advice = "put the secret where the configuration says, readable for the proxy's user"
        switch read {
        case nil:
            let text = "\(name): \(source) gave no secret within \(Self.limit.components.seconds) s"
            return .failed("secret", text, "run the command by hand, as the proxy's user")
        case .failure(let error)?:
            return .failed("secret", "\(name) is unavailable: \(ForeignText.printable("\(error)"))", advice)
        case .success(let secret)? where secret.isEmpty:
            return .failed("secret", "\(name): \(source) is empty", advice)
        case .success(let secret)?:
            let hasLines = configuration.storeSecrets.contains(source)
            if let form = SecretForm(secret.revealedBytes, hasLines: hasLines) {
                return .warning("secret", "\(name): the secret of \(source) \(form.fault)", form.remedy)
            }
        }
        guard case .file(let path) = source, let status = FileStatus(of: path) else {
            return .good("secret", "\(name): \(source) can be read")
        }
        let mode = String(status.mode, radix: 8)
        guard status.mode & 0o026 != 0 else { return .good("secret", "\(name): \(path) can be read, mode \(mode)") }
        let access = status.mode & 0o022 != 0 ? "written" : "read"
        return .warning(
            "secret", "\(name): \(path) can be \(access) by others (mode \(mode))",
            "chmod 600 \(path), owned by the proxy's user")
    }

    private func store() async -> [Finding] {
        switch configuration.store {
        case .memory: return [.good("store", "tokens are kept in memory, and are lost when the proxy ends")]
        case .postgres: return await records("the database can be reached")
        case .file(let directory, _):
            do throws(TokenStoreError) { try await assembly.check() } catch { return [Self.failed(error)] }
            guard FileSystem.exists(directory) else {
                return [.good("store", "\(directory) does not exist yet; the proxy creates it at its start")]
            }
            return FileSystem.isWritable(directory)
                ? await records("\(directory) can be written")
                : [.failed("store", "this user (\(ProcessIdentity.user)) can't write to \(directory)", "chown it")]
        }
    }

    private var assembly: StoreAssembly {
        StoreAssembly(configuration: configuration, secrets: secrets, waitsForAllServers: true)
    }

    private static func failed(_ error: TokenStoreError) -> Finding {
        .failed("store", ForeignText.printable(error.fault), Advice.sentence(for: error))
    }

    private func records(_ good: String) async -> [Finding] {
        do {
            let store = try await assembly.make().tokens
            var count = 0
            var findings: [Finding] = []
            for client in configuration.clients {
                let assembly = ClientAssembly(settings: client, configuration: configuration, secrets: secrets)
                if try await store.load(client: assembly.recordName) != nil {
                    count += 1
                } else if try await !store.names(of: client.name).isEmpty {
                    let text = "client \(client.name) has no record: \(Advice.foreignRecord)"
                    findings.append(.warning("store", text, "sign in again, or restore the former configuration"))
                }
            }
            return [.good("store", "\(good); the store holds records of \(count.counted("client"))")] + findings
        } catch let error as TokenStoreError {
            return [Self.failed(error)]
        } catch { return [.failed("store", ForeignText.printable("\(error)"), "check `store` and its key")] }
    }
}

/// Checks the environment, and asks the running proxy whether it has read the configuration file and can use its store.
struct SurroundingsCheck {
    let source: ConfigurationSource
    let configuration: Configuration

    var findings: [Finding] {
        var findings = LibcurlGlobal.removedVariables.map { name in
            Finding.warning(
                "environment", "\(name) is ignored: it would write the keys of all TLS connections to a file",
                "unset \(name) where the proxy is started")
        }
        guard let status else { return findings }
        if source.file != nil, status["configuration"]?["changed_since_read"] == .bool(true) {
            let text = "the running proxy has read another version of the configuration file"
            findings.append(.warning("file", text, "run heimdallr-proxy reload"))
        }
        // The proxy may use other credentials, another server or another network than this process.
        if case .string(let fault)? = status["store_fault"] {
            var advice = "check what the proxy can reach, as its user"
            if case .string(let text)? = status["store_advice"] { advice = ForeignText.printable(text) }
            findings.append(.failed("store", "the running proxy says: \(ForeignText.printable(fault))", advice))
        }
        // The other checks read the files anew, but the proxy uses earlier contents of these.
        guard case .array(let files) = status["files_not_in_use"] else { return findings }
        for file in files {
            guard let text = file.string else { continue }
            findings.append(
                .warning(
                    "file", "the running proxy uses an earlier content of \(ForeignText.printable(text))",
                    "correct this file; the proxy reads it again by itself"))
        }
        return findings
    }

    private var status: JSONValue? { Self.status(of: configuration) }

    /// Status of the running proxy; `nil` without one. Blocks.
    static func status(of configuration: Configuration) -> JSONValue? {
        guard let admin = configuration.admin else { return nil }
        let paths = AdminOptions.sockets(of: admin, environment: ProcessEnvironment.all)
        return AdminClient.first(of: paths, "GET", "/status", timeout: 2).flatMap { try? JSONParser.parse($0.body) }
    }
}
