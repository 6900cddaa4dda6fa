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
            try await StoreMove(source, target, clients: from.settings.clients.map(\.name)).run()
        }
    }
}

/// A move of all records of some clients.
private struct StoreMove {
    enum Outcome: String {
        case moved
        case none = "no record"
        case same = "is there already"
        case newer = "another record is there, and stays"
    }

    let source: any MovableTokenStore
    let target: any MovableTokenStore
    let clients: [String]

    init(_ source: any MovableTokenStore, _ target: any MovableTokenStore, clients: [String]) {
        self.source = source
        self.target = target
        self.clients = clients
    }

    /// Nothing is moved where one record can't be. The note is written before the first record goes: a move that is
    /// interrupted leaves no store with a record that another one has, too, and on which proxies start.
    func run() async throws {
        let isResumed = try await source.newPlace() != nil
        // The records of a store that was moved away are old.
        let isReturn = try await target.newPlace() != nil
        func outcome(_ record: TokenRecord?, _ there: TokenRecord?) -> Outcome {
            guard let record, record.holdsAnything else { return .none }
            guard let there, there.holdsAnything else { return .moved }
            if there.refreshToken == record.refreshToken, there.revision >= record.revision { return .same }
            if isReturn { return .moved }
            return isResumed && there.revision > record.revision ? .same : .newer
        }
        var records: [(client: String, name: String)] = []
        var refused: [String] = []
        for client in clients {
            let names = try await source.names(of: client)
            if names.isEmpty { say(client, .none) }
            records += names.map { (client, $0) }
            for name in names {
                let found = outcome(try await source.load(client: name), try await target.load(client: name))
                guard found == .newer else { continue }
                say(client, .newer)
                refused.append(client)
            }
        }
        guard refused.isEmpty else {
            throw TokenStoreError(
                "\(target.place) has other records of \(refused.joined(separator: ", ")), and nothing was moved",
                advice: "log out there first if those are not wanted", kind: .fault)
        }
        try await source.setNewPlace(target.place)
        var moved = 0
        for (client, name) in records {
            let done = try await holding(name) { record, there in
                let outcome = outcome(record, there)
                guard outcome == .moved, var record else { return outcome }
                record.revision = max(record.revision, (there?.revision ?? 0) + 1)
                try await target.save(record, client: name)
                return .moved
            }
            say(client, done)
            if done == .moved { moved += 1 }
        }
        try await target.setNewPlace(nil)
        OutputDescriptor.standardOutput.write("\(moved) moved\n")
    }

    private func say(_ client: String, _ outcome: Outcome) {
        OutputDescriptor.standardOutput.write("\(client): \(outcome.rawValue)\n")
    }

    /// Under the leases of both: a proxy of either may be in the middle of a refresh.
    private func holding(
        _ name: String, _ body: (TokenRecord?, TokenRecord?) async throws -> Outcome
    ) async throws -> Outcome {
        let leases = [try await source.lease(client: name), try await target.lease(client: name)]
        let outcome: Result<Outcome, any Error>
        do {
            outcome = .success(try await body(source.load(client: name), target.load(client: name)))
        } catch { outcome = .failure(error) }
        for lease in leases { await lease?.release() }
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
