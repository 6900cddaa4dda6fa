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
            For each client of the configuration, its records go to the store of --to, and stay where they were. A record \
            there that was written by somebody else since is never replaced: nothing is moved then, unless --only names \
            other clients. Stop the proxies of the old store first: what they refresh afterwards is not moved.

              heimdallr-proxy store move --config file.yaml --to postgres.yaml
            """)

    @OptionGroup var options: ConfigurationOptions

    @Option(help: ArgumentHelp("The configuration whose `store` is to have them.", valueName: "path"))
    var to: String

    @Option(parsing: .upToNextOption, help: ArgumentHelp("These clients only.", valueName: "client"))
    var only: [String] = []

    func run() async throws {
        let from = try ConfiguredStore(options.config)
        let (source, target) = (try await from.any(), try await ConfiguredStore(to).any())
        var moved = 0
        var refused: [String] = []
        for client in from.settings.clients.map(\.name) where only.isEmpty || only.contains(client) {
            let records = try await ConfiguredStore.reporting { try await source.names(of: client) }
            if records.isEmpty { OutputDescriptor.standardOutput.write("\(client): \(Outcome.none.rawValue)\n") }
            for record in records {
                let outcome = try await ConfiguredStore.reporting { try await Self.move(record, source, target) }
                OutputDescriptor.standardOutput.write("\(client): \(outcome.rawValue)\n")
                if outcome == .moved { moved += 1 }
                if outcome == .newer { refused.append(client) }
            }
        }
        OutputDescriptor.standardOutput.write("\(moved) moved\n")
        guard refused.isEmpty else {
            Complaint.error(
                "there are records of \(refused.joined(separator: ", ")) at the other end already: log out there "
                    + "first, if those are not wanted")
            throw ExitStatus.failure.error
        }
    }

    enum Outcome: String {
        case moved
        case none = "no record"
        case same = "is there already"
        case newer = "another record is there, and stays"
    }

    /// Under the leases of both, so that no proxy that still runs spends what is moved.
    static func move(
        _ client: String, _ source: any OAuthAccessTokenStore, _ target: any OAuthAccessTokenStore
    ) async throws -> Outcome {
        let lease = try await source.lease(client: client)
        let outcome: Result<Outcome, any Error>
        do { outcome = .success(try await moveHolding(client, source, target)) } catch { outcome = .failure(error) }
        await lease?.release()
        return try outcome.get()
    }

    private static func moveHolding(
        _ client: String, _ source: any OAuthAccessTokenStore, _ target: any OAuthAccessTokenStore
    ) async throws -> Outcome {
        guard var record = try await source.load(client: client), record.holdsAnything else { return .none }
        let lease = try await target.lease(client: client)
        let outcome: Result<Outcome, any Error>
        do {
            let there = try await target.load(client: client)
            if let there, there.holdsAnything {
                outcome = .success(
                    there.refreshToken == record.refreshToken && there.revision >= record.revision ? .same : .newer)
            } else {
                record.revision = max(record.revision, (there?.revision ?? 0) + 1)
                try await target.save(record, client: client)
                outcome = .success(.moved)
            }
        } catch { outcome = .failure(error) }
        await lease?.release()
        return try outcome.get()
    }
}

extension TokenRecord {
    fileprivate var holdsAnything: Bool { accessToken != nil || refreshToken != nil || dpopKey != nil }
}

/// The store of a configuration, for commands that work without a proxy.
struct ConfiguredStore {
    let settings: Configuration
    private let assembly: StoreAssembly
    private let secrets: SecretShelf

    /// - Throws: `ExitStatus.badConfiguration`, after every problem was printed.
    init(_ path: String?) throws {
        let environment = ProcessEnvironment.all
        settings = try ConfigurationSource.choose(named: path, environment: environment).load(environment: environment)
        secrets = SecretShelf(settings)
        assembly = StoreAssembly(
            settings: settings.store, secrets: secrets, logger: Logger(label: "heimdallr-proxy"),
            trustAnchors: settings.trustAnchorsFile, longestTimeout: settings.longestTimeout)
    }

    func recordName(of client: ClientSettings) -> String { ClientAssembly(client, settings, secrets).recordName }

    func postgres() async throws -> OAuthAccessTokenPostgresStore {
        try await Self.reporting { try await assembly.postgresStore() }
    }

    /// Of any kind that outlives a process, and ready.
    func any() async throws -> any OAuthAccessTokenStore {
        try await Self.reporting {
            switch settings.store {
            case .memory:
                throw TokenStoreError("`store` of `kind: memory` is gone with its process: there is nothing in it")
            case .file:
                let store = try await assembly.fileStore()
                try await store.prepare()
                return store
            case .postgres:
                let store = try await assembly.postgresStore()
                try await store.prepare()
                return store
            }
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
