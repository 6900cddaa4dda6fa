import Foundation
import Glibc
import Synchronization

/// A PostgreSQL server for tests, with its own data folder, a Unix socket and a loopback port. Refuses to run as root,
/// so in tests as root it runs as another user. The user `postgres` needs no password; `limited` needs `password` over
/// TCP.
public final class PostgresServer: Sendable {
    public static let password = "it's a \\secret word"
    public let port: UInt16
    public let folder: TemporaryDirectory
    /// CA of the server's certificate, which is for the name `localhost`.
    public let authority: PrivateCA
    private let child: Mutex<ChildProcess>
    private let sessions = Mutex<[ChildProcess]>([])

    /// `nobody`, because initdb requires a user with a name.
    private static let user: uid_t = 65534
    private static let programs = "/usr/lib/postgresql/15/bin/"

    private static let one = Task { try await PostgresServer() }

    /// Returns the one server for all tests of the process. Each test has its own space.
    public static func shared() async throws -> PostgresServer { try await one.value }

    /// - Throws: `TestFailure` with the output when the start fails.
    public init() async throws {
        folder = try TemporaryDirectory()
        let authority = try await PrivateCA()
        self.authority = authority
        try Self.own(folder.path)
        try await ChildProcess.output(
            of: Self.asUser([
                Self.programs + "initdb", "-D", folder.path(of: "data"), "-U", "postgres", "-A", "trust", "--no-sync",
                "--no-instructions", "-E", "UTF8", "--locale=C",
            ]))
        let certificate = try await authority.server(["DNS:localhost"])
        for (source, name) in [(certificate.certificateFile, "server.pem"), (certificate.keyFile, "server.key")] {
            let copy = try folder.write(Array(try Data(contentsOf: URL(fileURLWithPath: source))), to: name)
            try Self.own(copy)
        }
        try Self.own(
            try folder.write(
                """
                local all all trust
                host all postgres 127.0.0.1/32 trust
                host all all 127.0.0.1/32 scram-sha-256

                """, to: "hba"))
        port = try freePort()
        child = Mutex(try Self.start(folder, port))
        try await waitUntilUp()
        try await sql("CREATE ROLE limited LOGIN PASSWORD '\(Self.password.replacing("'", with: "''"))'")
    }

    deinit { child.withLock { $0.kill() } }

    private static func start(_ folder: TemporaryDirectory, _ port: UInt16) throws -> ChildProcess {
        let settings = [
            "port=\(port)", "listen_addresses=127.0.0.1,127.0.0.4", "unix_socket_directories=\(folder.path)",
            "fsync=off",
            "hba_file=\(folder.path(of: "hba"))", "ssl=on", "ssl_cert_file=\(folder.path(of: "server.pem"))",
            "ssl_key_file=\(folder.path(of: "server.key"))", "shared_buffers=16MB", "max_connections=60",
            "autovacuum=off", "max_wal_size=64MB", "max_prepared_transactions=4",
        ]
        return try ChildProcess(
            asUser([programs + "postgres", "-D", folder.path(of: "data")] + settings.flatMap { ["-c", $0] }))
    }

    private static func asUser(_ arguments: [String]) -> [String] {
        guard geteuid() == 0 else { return arguments }
        // A process that changes its user loses its parent-death signal, which is therefore set again.
        return ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", "--pdeathsig=KILL"] + arguments
    }

    private static func own(_ path: String) throws {
        guard geteuid() == 0 else { return }
        guard unsafe chown(path, user, user) == 0 else { throw TestFailure("can't give \(path) away") }
    }

    private func waitUntilUp() async throws {
        try await eventually("PostgreSQL") {
            if self.child.withLock({ $0.ending }) != nil { throw TestFailure(self.child.withLock { $0.transcript }) }
            return (try? await self.sql("SELECT 1")) == "1\n"
        }
    }

    /// The server's messages so far.
    public var log: String { child.withLock { $0.errors } }

    // MARK: Use

    /// Connection string over the Unix socket, as superuser.
    public var connection: String { "host=\(folder.path) port=\(port) user=postgres dbname=postgres" }

    /// Connection string over TCP, without TLS.
    public var plainConnection: String {
        "host=127.0.0.1 port=\(port) user=postgres dbname=postgres sslmode=disable"
    }

    /// Returns psql's output without headings.
    @discardableResult
    public func sql(_ statement: String) async throws -> String {
        try await ChildProcess.output(
            of: [
                Self.programs + "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", folder.path, "-p", "\(port)", "-U",
                "postgres",
                "-d", "postgres", "-c", statement,
            ])
    }

    /// Executes statements in a session that then sleeps until `endSession`.
    /// - Parameter name: its `application_name`.
    public func session(named name: String, _ statements: [String]) async throws {
        let commands = (statements + ["SELECT pg_sleep(600)"]).flatMap { ["-c", $0] }
        let child = try ChildProcess(
            [
                Self.programs + "psql", "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", folder.path, "-p", "\(port)", "-U",
                "postgres", "-d", "postgres",
            ] + commands, environment: ["PGAPPNAME": name])
        sessions.withLock { $0.append(child) }
        try await eventually("the session sleeps") {
            if child.ending != nil { throw TestFailure(child.transcript) }
            return try await self.sql(
                "SELECT count(*) FROM pg_stat_activity WHERE application_name = '\(name)' AND wait_event = 'PgSleep'")
                != "0\n"
        }
    }

    public func endSession(named name: String) async throws {
        try await sql(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE application_name = '\(name)'")
    }

    /// Kills the server with SIGKILL, which looks like a crash of its machine to clients.
    public func crash() async throws {
        let child = child.withLock { $0 }
        child.signal(SIGKILL)
        try await child.ended()
    }

    /// Starts the server again after a crash.
    public func restart() async throws {
        try await eventually("PostgreSQL again") {
            let child = try Self.start(self.folder, self.port)
            self.child.withLock { $0 = child }
            // The start fails while processes of the killed server are still ending.
            return (try? await self.waitUntilUp()) != nil
        }
    }
}

/// pgbouncer before a server, in the mode that may give each transaction another connection.
public final class PgBouncer: Sendable {
    public let port: UInt16
    private let child: ChildProcess
    private let folder: TemporaryDirectory

    /// - Throws: `TestFailure` with the output when the start fails.
    public init(before server: PostgresServer) async throws {
        folder = try TemporaryDirectory()
        port = try freePort()
        let configuration = try folder.write(
            """
            [databases]
            postgres = host=\(server.folder.path) port=\(server.port) user=postgres dbname=postgres
            [pgbouncer]
            listen_addr = 127.0.0.1
            listen_port = \(port)
            unix_socket_dir =
            auth_type = any
            pool_mode = transaction
            default_pool_size = 10
            \(geteuid() == 0 ? "user = nobody" : "")

            """, to: "pgbouncer.ini")
        if geteuid() == 0 {
            // pgbouncer reads its file again as the user to which it changes.
            for path in [folder.path, configuration] { _ = unsafe chmod(path, 0o755) }
            _ = unsafe chmod(server.folder.path, 0o755)
        }
        child = try ChildProcess(
            ["pgbouncer", configuration],
            environment: ["PATH": "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"])
        let child = child
        let port = port
        try await eventually("pgbouncer") {
            if child.ending != nil { throw TestFailure(child.transcript) }
            guard let connection = try? await RawClient.connect(port: port) else { return false }
            connection.close()
            return true
        }
    }

    deinit { child.kill() }

    public var connection: String { "host=127.0.0.1 port=\(port) user=postgres dbname=postgres sslmode=disable" }
    /// pgbouncer's messages so far.
    public var log: String { child.errors + child.output }
}
