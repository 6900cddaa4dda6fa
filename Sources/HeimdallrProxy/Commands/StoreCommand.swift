import ArgumentParser
import Configuration
import Heimdallr
import Logging
import PostgresStore

/// What an operator does with a token store. No running proxy is asked.
struct StoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "store",
        abstract: "Make, look at or move the token store.",
        discussion: """
            For `store: {kind: postgres}`: `store init` makes the tables, `store status` says what is in them. `store move` \
            takes the records of one store to another, of whatever kind.
            """,
        subcommands: [StoreInitCommand.self, StoreStatusCommand.self, StoreMoveCommand.self])
}

/// Makes the tables.
struct StoreInitCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "init",
        abstract: "Make the tables of a store in PostgreSQL.",
        discussion: """
            Makes what is missing and changes nothing that is there; it needs the right to make a schema. With --sql it \
            prints the statements instead, for whoever keeps the database, and needs no configuration.

            The proxy itself needs less: with --role NAME that role gets the right to read, add and change rows.

              heimdallr-proxy store init --sql --role heimdallr | psql production
            """)

    @OptionGroup var options: ConfigurationOptions

    @Flag(help: "Print the statements, and carry out nothing.")
    var sql = false

    @Option(help: ArgumentHelp("A role that may use the tables from then on.", valueName: "name"))
    var role: String?

    func run() async throws {
        guard !sql else {
            OutputDescriptor.standardOutput.write(PostgresSchema.sql(role: role))
            return
        }
        let store = try await ConfiguredStore(options.config).postgres()
        try await ConfiguredStore.reporting { try await store.makeSchema(role: role) }
        OutputDescriptor.standardOutput.write("the tables are there: schema heimdallr\n")
    }
}

/// What is in the tables.
struct StoreStatusCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Look at a store in PostgreSQL.",
        discussion: """
            Says whether the database can be reached and the tables may be used, how many records there are, how old they \
            are, which key sealed them, and who holds leases. Nothing of a record is read. The exit code is 1 when the \
            store can't be used.
            """)

    @OptionGroup var options: ConfigurationOptions

    func run() async throws {
        let configured = try ConfiguredStore(options.config)
        let store = try await configured.postgres()
        let report = try await ConfiguredStore.reporting { try await store.report() }
        let known = Set(configured.settings.clients.map(configured.recordName))
        OutputDescriptor.standardOutput.write(report.text(known: known))
    }
}

/// From one store to another.
struct StoreMoveCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "move",
        abstract: "Take the records of the configured store to that of another configuration.",
        discussion: """
            For each client of the configuration, its records go to the store of --to. The store they leave keeps a note, and \
            no proxy starts on it any more; moving the records back takes the note away. Stop the proxies of the store first. \
            A record at the other end that was written by somebody else is never replaced: nothing is moved then. What a move \
            that was interrupted has left behind is moved by the same command.

              heimdallr-proxy store move --config file.yaml --to postgres.yaml
            """)

    @OptionGroup var options: ConfigurationOptions

    @Option(help: ArgumentHelp("The configuration whose `store` is to have them.", valueName: "path"))
    var to: String

    func run() async throws {
        let (from, other) = (try ConfiguredStore(options.config), try ConfiguredStore(to))
        guard from.settings.store != other.settings.store else {
            Complaint.error("both configurations name the same store")
            throw ExitStatus.badConfiguration.error
        }
        let source = try await from.movable(alone: true)
        let target = try await other.movable(alone: false)
        try await ConfiguredStore.reporting {
            try await StoreMove(source, target, clients: from.settings.clients.map(\.name)).run {
                OutputDescriptor.standardOutput.write("\($0)\n")
            }
        }
    }
}

/// The store of a configuration, for commands that work without a proxy.
struct ConfiguredStore {
    let settings: Configuration
    private let assembly: StoreAssembly
    private let secrets: SecretShelf

    /// - Throws: `ExitStatus.badConfiguration`, after every problem was printed.
    init(_ path: String?) throws {
        var environment = ProcessEnvironment.all
        let source = try ConfigurationSource.choose(named: path, environment: environment)
        if source.wantsPlayground { PlaygroundVariables.addPlaceholders(to: &environment) }
        settings = try source.load(environment: environment)
        secrets = SecretShelf(settings)
        assembly = StoreAssembly(
            settings: settings.store, secrets: secrets, logger: Logger(label: "heimdallr-proxy"),
            trustAnchors: settings.trustAnchorsFile, longestTimeout: settings.longestTimeout)
    }

    func recordName(of client: ClientSettings) -> String { ClientAssembly(client, settings, secrets).recordName }

    func postgres() async throws -> OAuthAccessTokenPostgresStore {
        if case .postgres = settings.store { return try await Self.reporting { try await assembly.postgresStore() } }
        let kept =
            if case .file(let directory, _) = settings.store {
                "keeps its tokens in \(directory), which the proxy makes by itself"
            } else {
                "keeps its tokens in memory only"
            }
        Complaint.error(
            "`store init` and `store status` are for a store in PostgreSQL; this configuration \(kept). "
                + "Write store: {kind: postgres, …}, or see the state of the tokens by heimdallr-proxy status")
        throw ExitStatus.badConfiguration.error
    }

    /// Of any kind that outlives a process, and ready to be moved from or to.
    func movable(alone: Bool) async throws -> any MovableTokenStore {
        try await Self.reporting {
            let store: any MovableTokenStore
            switch settings.store {
            case .memory:
                throw TokenStoreError("`store` of `kind: memory` is gone with its process: there is nothing in it")
            case .file: store = try await assembly.fileStore()
            case .postgres: store = try await assembly.postgresStore()
            }
            try await store.prepareMove(alone: alone)
            return store
        }
    }

    /// Prints what went wrong.
    static func reporting<Value>(_ body: () async throws -> Value) async throws -> Value {
        do {
            return try await body()
        } catch let error as TokenStoreError {
            Complaint.error(
                "\(error)")
            throw (error.kind == .misconfigured ? ExitStatus.badConfiguration : .failure).error
        }
    }
}
