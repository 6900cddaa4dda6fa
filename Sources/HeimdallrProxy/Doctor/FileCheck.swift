import Administration
import Configuration
import CurlTransport
import Enclosure
import FileSystem
import Heimdallr
import Reactor
import WireText

/// Checks what this machine has for the configuration: the secrets, the token store, enclosure and interception.
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

    func findings() async -> [Finding] {
        var findings: [Finding] = []
        for (name, source) in sources { findings.append(await check("of \(name)", source)) }
        if isWhole {
            findings += await store()
            findings += await BlockingWork.run { disks }
            findings.append(await enclosure())
            findings += await InterceptionCheck(configuration: configuration, secrets: secrets, loop: loop).findings()
            findings += LibcurlGlobal.removedVariables.map { name in
                .warning(
                    "environment", "\(name) is ignored: it would write the keys of all TLS connections to a file",
                    "unset \(name) where the proxy is started")
            }
        }
        return findings.isEmpty ? [.good("secrets", "the configuration has no secrets")] : findings
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
            let hasLines = configuration.store.secrets.contains(source)
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

    /// Folders besides the store's in which the proxy writes, if their disks are full.
    private var disks: [Finding] {
        var folders: [(use: String, path: String)] = []
        if case .file(let path) = configuration.audit {
            folders.append(("the audit file", AwaitedFile.folder(of: path)))
        }
        if let store = configuration.interception?.store { folders.append(("interception", store.directory)) }
        return folders.filter { FileSystem.isFull($0.path) }.map { use, path in
            .failed("disk", "the disk of \(path) is full, and \(use) needs room there", "free space there")
        }
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
                : [
                    .failed(
                        "store", "this user (\(ProcessIdentity.user)) can't write to \(directory)",
                        "make the proxy's user the owner of the folder, and run doctor as that user")
                ]
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

    /// Tries to enclose programs (`exec --enclose`), by a process that makes the namespaces and ends.
    private func enclosure() async -> Finding {
        let start = StartState()
        let refusal = await BlockingWork.run { [configuration] () -> EnclosureRefusal? in
            // Its end of the connection closes with the value, and so ends the process.
            do throws(EnclosureRefusal) {
                _ = try EnclosedChild(["true"], allowed: [], configuration, removing: [], as: start)
            } catch {
                return error
            }
            return nil
        }
        guard let refusal else { return .good("enclosure", "programs can be enclosed: exec --enclose") }
        return .skipped("enclosure", "exec --enclose can't be used here: \(refusal)")
    }
}
