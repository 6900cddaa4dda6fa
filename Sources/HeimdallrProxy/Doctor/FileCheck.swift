import Administration
import Configuration
import FileSystem
import Heimdallr
import Logging
import Synchronization
import WireText

/// What the configuration needs of this machine: its secrets, and the folder of the token store.
struct FileCheck: Sendable {
    let configuration: Configuration
    let secrets: SecretShelf
    /// Whose names were given; empty: everybody.
    let clients: [ClientSettings]
    let upstreams: [UpstreamSettings]
    /// Also what is nobody's in particular.
    let isWhole: Bool

    /// How long one secret may take to be had.
    private static let limit = Duration.seconds(10)

    func diagnosis() async -> Diagnosis {
        var findings: [Finding] = []
        for (name, source) in sources { findings.append(contentsOf: await check(name, source)) }
        if isWhole { findings += await store() }
        if findings.isEmpty { findings = [.good("secrets", "there are none")] }
        return Diagnosis(
            kind: .configuration, name: "configuration", parts: [Diagnosis.Part(place: nil, findings: findings)])
    }

    // MARK: Secrets

    /// Each once, by who wants it first.
    private var sources: [(name: String, source: SecretSource)] {
        var all: [(String, SecretSource)] = []
        for client in clients {
            all += (client.secrets + [client.clientKey, client.clientAssertion].compactMap(\.self)).map {
                ("client \(client.name)", $0)
            }
        }
        for upstream in upstreams {
            all += upstream.injections.flatMap(\.secrets).map { ("upstream \(upstream.host)", $0) }
        }
        if isWhole {
            for (name, source) in configuration.proxy.users.sorted(by: { $0.key < $1.key }) {
                all.append(("user \(name)", source))
            }
            if let token = configuration.admin?.token { all.append(("admin.token", token)) }
            switch configuration.store {
            case .memory: break
            case .file(_, let key): all.append(("store.key", key))
            case .postgres(let settings):
                all.append(("store.connection", settings.connection))
                all += settings.keys.map { ("store.key", $0) }
            }
        }
        var seen: Set<SecretSource> = []
        return all.filter { seen.insert($0.1).inserted }
    }

    private func check(_ name: String, _ source: SecretSource) async -> [Finding] {
        if case .literal = source {
            return [
                .warning(
                    "secret", "of \(name) stands in the configuration itself",
                    "put it into a file of its own: {file: PATH}")
            ]
        }
        let secret = secrets.secret(source)
        let box = Outcome()
        await waitBriefly(atMost: Self.limit) {
            do { box.set(.success(try await secret.secret().count)) } catch {
                box.set(.failure(error as? SecretProviderError ?? SecretProviderError("it can't be read")))
            }
        }
        switch box.value {
        case nil:
            return [
                .failed(
                    "secret", "of \(name): \(source) gave nothing within \(Self.limit.components.seconds) s",
                    "run the command by hand, as the proxy's user")
            ]
        case .failure(let error)?:
            return [
                .failed(
                    "secret", "of \(name) can't be had: \(ForeignText.printable("\(error)"))",
                    "put it where the configuration says it is, readable for the proxy's user")
            ]
        case .success(0)?:
            return [.failed("secret", "of \(name): \(source) is empty", "put the secret there")]
        case .success?: break
        }
        guard case .file(let path) = source, let status = FileStatus(of: path) else {
            return [.good("secret", "of \(name): \(source) can be read")]
        }
        let mode = String(status.mode, radix: 8)
        guard status.mode & 0o006 == 0, status.mode & 0o020 == 0 else {
            let who = status.mode & 0o022 != 0 ? "written" : "read"
            return [
                .warning(
                    "secret", "of \(name): \(path) can be \(who) by others (mode \(mode))",
                    "chmod 600 \(path), owned by the proxy's user")
            ]
        }
        return [.good("secret", "of \(name): \(path) can be read, mode \(mode)")]
    }

    private final class Outcome: Sendable {
        private let state = Mutex<Result<Int, SecretProviderError>?>(nil)
        var value: Result<Int, SecretProviderError>? { state.withLock { $0 } }
        func set(_ value: Result<Int, SecretProviderError>) { state.withLock { $0 = value } }
    }

    // MARK: The store

    private func store() async -> [Finding] {
        if case .memory = configuration.store {
            return [.good("store", "tokens are kept in memory, and are gone with the process")]
        }
        guard case .file(let directory, _) = configuration.store else { return await records("it can be reached") }
        do throws(TokenStoreError) { try await assembly.check() } catch { return [Self.failed(error)] }
        guard FileSystem.exists(directory) else {
            return [.good("store", "\(directory) is not there yet; it is made at the start")]
        }
        return FileSystem.isWritable(directory)
            ? await records("\(directory) can be written")
            : [.failed("store", "this user (\(ProcessIdentity.user)) can't write to \(directory)", "chown it")]
    }

    private var assembly: StoreAssembly {
        StoreAssembly(
            settings: configuration.store, secrets: secrets,
            logger: Logger(label: "doctor") { _ in SwiftLogNoOpLogHandler() },
            trustAnchors: configuration.trustAnchorsFile)
    }

    private static func failed(_ error: TokenStoreError) -> Finding {
        .failed("store", ForeignText.printable(error.fault), Advice.sentence(for: error))
    }

    /// Whether what is kept can be read with this key.
    private func records(_ good: String) async -> [Finding] {
        do {
            let store = try await assembly.make().tokens
            var count = 0
            var findings: [Finding] = []
            for client in configuration.clients {
                let name = ClientAssembly(client, configuration, secrets).recordName
                if try await store.load(client: name) != nil {
                    count += 1
                } else if try await store.names(of: client.name).isEmpty == false {
                    findings.append(
                        .warning(
                            "store", "client \(client.name) has no record: \(Advice.foreignRecord)",
                            "sign in again, or restore the former configuration"))
                }
            }
            return [.good("store", "\(good); it holds records of \(count.counted("client"))")] + findings
        } catch let error as TokenStoreError {
            return [Self.failed(error)]
        } catch {
            return [.failed("store", ForeignText.printable("\(error)"), "check `store` and its key")]
        }
    }
}
