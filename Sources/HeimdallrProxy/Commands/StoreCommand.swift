import ArgumentParser
import Configuration
import Heimdallr
import Logging
import PostgresStore
import WireText

struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Make, inspect or move the token store.",
        discussion: """
            For a store in PostgreSQL, `store init` makes the tables, and `store status` shows their state. `store move` \
            moves the records of a store of any kind to another store.
            """,
        subcommands: [StoreInitCommand.self, StoreStatusCommand.self, StoreMoveCommand.self])
}

struct StoreInitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Make the tables of a store in PostgreSQL.",
        discussion: """
            Makes the missing tables and columns, and changes nothing else. It needs the right to create a schema. With --sql it \
            prints the statements for a database administrator instead, and needs no configuration.

            The proxy itself needs fewer rights. With --role NAME that role may read, add and change rows.

              heimdallr-proxy store init --sql --role heimdallr | psql -v ON_ERROR_STOP=1 production
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Print the statements without executing them.")
    var sql = false

    @Option(help: ArgumentHelp("A role that gets the right to use the tables.", valueName: "name"))
    var role: String?

    func run() async throws {
        guard !sql else {
            CommandOutput.write(PostgresSchema.sql(role: role))
            return
        }
        let store = try await ConfiguredStore(options).postgres()
        try await ConfiguredStore.reporting { try await store.makeSchema(role: role) }
        CommandOutput.write("the tables exist: schema heimdallr\n")
    }
}

struct StoreStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the state of a store in PostgreSQL.",
        discussion: """
            Shows whether the database is reachable and the tables may be used, the number of records, their age, the key \
            that sealed them, and the owners of leases. It reads no content of a record. The exit code is 1 when the store \
            can't be used, and 78 when it is not in PostgreSQL.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() async throws {
        let configured = try ConfiguredStore(options)
        let store = try await configured.postgres()
        let report = try await ConfiguredStore.reporting { try await store.report() }
        let known = Set(configured.settings.clients.map(configured.recordName))
        CommandOutput.write(report.text(known: known))
    }
}

struct StoreMoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Move the records of this configuration's store to the store of another configuration.",
        discussion: """
            Stop the proxies of the store first. Moves the records of each client to the store of --to. The former \
            store keeps a note, and no proxy starts on it; moving records back removes the note. If the other store \
            has other records of these clients, nothing is moved. The same command continues an interrupted move.

              heimdallr-proxy store move --config file.yaml --to postgres.yaml
            """)

    @OptionGroup var options: ConfigurationOptions

    @Option(help: ArgumentHelp("The configuration of the store that receives the records.", valueName: "path"))
    var to: String

    func run() async throws {
        var receiver = options
        receiver.config = to
        let (from, other) = (try ConfiguredStore(options), try ConfiguredStore(receiver))
        guard from.settings.store != other.settings.store else {
            throw ExitStatus.badConfiguration.error("both configurations name the same store: give another one by --to")
        }
        let source = try await from.movable(alone: true)
        let target = try await other.movable(alone: false)
        try await ConfiguredStore.reporting {
            try await StoreMove(source, target, clients: from.settings.clients.map(\.name)).run {
                CommandOutput.write("\($0)\n")
            }
        }
    }
}

/// The store of a configuration, for commands without a proxy.
struct ConfiguredStore {
    let settings: Configuration
    private let assembly: StoreAssembly
    private let secrets: SecretCache

    init(_ options: ConfigurationOptions) throws {
        settings = try options.load().settings
        secrets = SecretCache(settings)
        assembly = StoreAssembly(
            configuration: settings, secrets: secrets, logger: Logger(label: "heimdallr-proxy"),
            waitsForAllServers: true)
    }

    func recordName(of client: ClientSettings) -> String {
        ClientAssembly(settings: client, configuration: settings, secrets: secrets).recordName
    }

    func postgres() async throws -> OAuthAccessTokenPostgresStore {
        if case .postgres(let postgres) = settings.store {
            return try await Self.reporting { try await assembly.postgresStore(postgres) }
        }
        let kept =
            if case .file(let directory, _) = settings.store {
                "keeps its tokens in \(directory), which the proxy creates by itself"
            } else {
                "keeps its tokens in memory only"
            }
        throw ExitStatus.badConfiguration.error(
            "`store init` and `store status` are for a store in PostgreSQL; this configuration \(kept). "
                + "Write store: {kind: postgres, …}, or run heimdallr-proxy status to see the state of the tokens")
    }

    /// Returns the store, prepared for a move. A store in memory can't be moved.
    /// - Parameter alone: whether to keep proxies out of the store until the returned object is released.
    func movable(alone: Bool) async throws -> any MovableTokenStore {
        try await Self.reporting {
            let store: any MovableTokenStore
            switch settings.store {
            case .memory:
                throw TokenStoreError("a store of `kind: memory` ends with its process, so it has no records to move")
            case .file(let directory, let key): store = try await assembly.fileStore(directory, key)
            case .postgres(let settings): store = try await assembly.postgresStore(settings)
            }
            try await store.prepareMove(alone: alone)
            return store
        }
    }

    static func reporting<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let error as TokenStoreError {
            ErrorOutput.error("\(error)")
            throw (error.kind == .misconfigured ? ExitStatus.badConfiguration : .failure).error
        }
    }
}

extension OAuthAccessTokenPostgresStore.Report {
    func text(known: Set<String>) -> String {
        var text = """
            PostgreSQL \(ForeignText.printable(server)), tables of version \(schema)
            changes are \(isPooled ? "polled, because of a connection pooler" : "notified")
            \(rows.count { !$0.isEmpty }.counted("record")), \(pendingLogins.counted("login")) under way

            """
        if let newLocation { text += "moved to \(ForeignText.printable(newLocation)): no proxy starts on this store\n" }
        for row in rows {
            let key = row.isEmpty ? "empty" : row.key.map { "key \($0)" } ?? "sealed with a key that is not configured"
            text += "  \(Self.client(row.client)): revision \(row.revision), \(key), written \(row.age.rough) ago"
            text +=
                known.contains(row.client)
                ? "\n" : ", not of this configuration: \(ForeignText.printable(row.client))\n"
        }
        if !leases.isEmpty { text += "Leases:\n" }
        for lease in leases {
            text += "  \(Self.client(lease.client)): \(ForeignText.printable(lease.owner)), "
            text += lease.left > .zero ? "for \(lease.left.rough) more\n" : "expired, not released\n"
        }
        return text
    }

    private static func client(_ record: String) -> String {
        ForeignText.printable(RecordName.client(of: record) ?? record)
    }
}
