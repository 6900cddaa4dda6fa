import Foundation
import TestSupport
import Testing

@Suite("tokens that many proxies share", .timeLimit(.minutes(3)))
struct SharedStoreTests {
    private let folder: TemporaryDirectory
    private let server: PostgresServer
    private let space = "e2e-\(UInt32.random(in: .min ... .max))"

    init() async throws {
        folder = try TemporaryDirectory()
        server = try await PostgresServer.shared()
        try folder.write([UInt8](repeating: 7, count: 32), to: "key")
        try folder.write(server.connection, to: "database")
        let made = try await RunningProxy.run(["store", "init", "--config", try file("init.yaml", postgres)])
        try #require(made.ending == .exited(0), "\(made.transcript)")
    }

    private var postgres: String {
        "store: {kind: postgres, space: \(space), connection: {file: \(folder.path)/database}, key: {file: \(folder.path)/key}}"
    }

    private var files: String {
        "store: {kind: file, directory: \(folder.path)/state, key: {file: \(folder.path)/key}}"
    }

    /// A configuration for commands that need no proxy.
    private func file(_ name: String, _ store: String) throws -> String {
        try folder.write(
            """
            clients:
              api: {token_endpoint: "http://127.0.0.1:9/", client_id: x, client_secret: y, allow_plaintext: true}
            upstreams:
              - {host: api.test, client: api}
            \(store)
            """, to: name)
    }

    @Test func `one proxy's token is the other's, and the status says so without it`() async throws {
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { _, number in
            .token("access-\(number + 1)", refreshToken: "refresh-\(number + 1)")
        }
        let configuration = ProxyConfiguration(
            tokenEndpoint: endpoint.url, admin: "", upstreams: ProxyConfiguration.upstream(url: origin.url),
            more: postgres)
        let (one, other) = (try await RunningProxy(configuration), try await RunningProxy(configuration))
        #expect(try await one.get("http://api.test/").status == 200)
        #expect(try await other.get("http://api.test/").status == 200)
        #expect(Set(origin.requests.map { $0.fields.value("Authorization") }) == ["Bearer access-1"])
        #expect(endpoint.requests.count == 1)
        let status = try await RunningProxy.run(["store", "status", "--config", try file("status.yaml", postgres)])
        #expect(status.ending == .exited(0), "\(status.transcript)")
        #expect(status.output.contains("  api: revision 1, key 1"), "\(status.output)")
        #expect(!status.output.contains("access-1") && !status.output.contains("refresh-1"))
    }

    @Test func `a text that somebody wrote into a row turns no line of the status around`() async throws {
        _ = try await server.sql(
            "INSERT INTO heimdallr.token (space, client) VALUES ('\(space)', U&'a\\202E\\0085\\009B31m\\2066b')")
        let status = try await RunningProxy.run(["store", "status", "--config", try file("status.yaml", postgres)])
        #expect(status.ending == .exited(0), "\(status.transcript)")
        #expect(status.output.contains("  a???31m?b: revision 0"), "\(status.output)")
    }

    @Test func `records move from files to the database and back, and no proxy starts on what they left`() async throws
    {
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { _, number in .token("T\(number + 1)", refreshToken: "R\(number + 1)") }
        func proxy(_ store: String) async throws -> RunningProxy {
            try await RunningProxy(
                ProxyConfiguration(
                    tokenEndpoint: endpoint.url, admin: "", upstreams: ProxyConfiguration.upstream(url: origin.url),
                    more: store))
        }
        func use(_ store: String) async throws {
            let proxy = try await proxy(store)
            #expect(try await proxy.get("http://api.test/").status == 200)
            let refresh = try await RunningProxy.run(
                ["refresh", "api", "--socket", proxy.directory.path(of: "admin.sock")])
            #expect(refresh.ending == .exited(0), "\(refresh.transcript)")
            #expect(try await proxy.terminate() == .exited(0))
        }
        try await use(files)
        let (old, new) = (try file("files.yaml", files), try file("postgres.yaml", postgres))
        func move(_ from: String, _ to: String) async throws -> ChildProcess {
            try await RunningProxy.run(["store", "move", "--config", from, "--to", to])
        }
        let (there, back) = ((old, new, files, postgres), (new, old, postgres, files))
        for (from, to, left, reached) in [there, back, there] {
            // A running proxy would spend the moved refresh token.
            let running = try await proxy(left)
            let refused = try await move(from, to)
            #expect(refused.ending == .exited(1), "\(refused.transcript)")
            #expect(refused.errors.contains("a proxy runs on ") && refused.errors.contains("stop it first"))
            #expect(try await running.terminate() == .exited(0))

            let moved = try await move(from, to)
            #expect(moved.ending == .exited(0), "\(moved.transcript)")
            #expect(moved.output == "api: moved\n1 moved\n")
            for command in ["serve", "doctor"] {
                let stopped = try await RunningProxy.run([command, "--config", from])
                #expect(stopped.ending != .exited(0), "\(command): \(stopped.transcript)")
                #expect(stopped.transcript.contains("was moved to "), "\(command): \(stopped.transcript)")
                #expect(stopped.transcript.contains("store move"), "\(command): \(stopped.transcript)")
            }
            try await use(reached)
            // The same once more, as after an interruption.
            let again = try await move(from, to)
            #expect(again.output == "api: no record\n0 moved\n", "\(again.transcript)")
        }
        // One chain: each proxy began with the token that the one before had got.
        #expect(origin.requests.map { $0.fields.value("Authorization") } == (1...4).map { "Bearer T\($0)" })
        #expect(endpoint.requests.count == 5)
        let check = try await RunningProxy.run(["check", "--config", old])
        #expect(check.ending != .exited(0) && check.transcript.contains("was moved to "), "\(check.transcript)")
        let status = try await RunningProxy.run(["store", "status", "--config", new])
        #expect(!status.output.contains("moved to"), "\(status.output)")
    }

    @Test(arguments: [true, false])
    func `a move that ended after its note loses nothing, and one over other records moves nothing`(
        fromFiles: Bool
    ) async throws {
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { _, number in .token("T\(number + 1)", refreshToken: "R\(number + 1)") }
        func use(_ store: String) async throws {
            let proxy = try await RunningProxy(
                ProxyConfiguration(
                    tokenEndpoint: endpoint.url, upstreams: ProxyConfiguration.upstream(url: origin.url), more: store))
            #expect(try await proxy.get("http://api.test/").status == 200)
            #expect(try await proxy.terminate() == .exited(0))
        }
        let (from, to) = fromFiles ? (files, postgres) : (postgres, files)
        let (old, new) = (try file("old.yaml", from), try file("new.yaml", to))
        try await use(from)
        try await use(to)
        let other = try await RunningProxy.run(["store", "move", "--config", old, "--to", new])
        #expect(other.ending == .exited(1), "\(other.transcript)")
        #expect(other.output == "api: another record is there, and stays\n")
        #expect(other.errors.contains("nothing was moved"))
        // No note: proxies start.
        try await use(from)
        try await use(to)
        #expect(endpoint.requests.count == 2)

        if fromFiles {
            _ = try await server.sql("UPDATE heimdallr.token SET sealed = NULL WHERE space = '\(space)'")
            try folder.write("space elsewhere\u{1B}[31m", to: "state/moved-to.txt")
        } else {
            try FileManager.default.removeItem(atPath: folder.path(of: "state"))
            _ = try await server.sql(
                "INSERT INTO heimdallr.token (space, client, holder) VALUES ('\(space)', 'moved', 'files elsewhere')")
        }
        let stopped = try await RunningProxy.run(["serve", "--config", old])
        // A note in a folder is looked at by `check`; nothing looks into a database for it.
        #expect(stopped.ending == .exited(fromFiles ? 78 : 1), "\(stopped.transcript)")
        #expect(!stopped.transcript.contains("\u{1B}"))
        let resumed = try await RunningProxy.run(["store", "move", "--config", old, "--to", new])
        #expect(resumed.output == "api: moved\n1 moved\n", "\(resumed.transcript)")
        try await use(to)
        #expect(endpoint.requests.count == 2)
    }

    /// A transaction pooler hides a running proxy from the move.
    @Test func `a proxy that runs on a store that was moved spends nothing of it`() async throws {
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { _, number in
            .token("T\(number + 1)", refreshToken: "R\(number + 1)")
        }
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                tokenEndpoint: endpoint.url, admin: "", upstreams: ProxyConfiguration.upstream(url: origin.url),
                more: postgres))
        #expect(try await proxy.get("http://api.test/").status == 200)
        let status = try await RunningProxy.run(["store", "status", "--config", try file("status.yaml", postgres)])
        #expect(status.output.contains("\n1 record, 0 logins under way\n"), "\(status.transcript)")
        _ = try await server.sql(
            "INSERT INTO heimdallr.token (space, client, holder) VALUES ('\(space)', 'moved', 'files elsewhere')")
        let refresh = try await RunningProxy.run(
            ["refresh", "api", "--socket", proxy.directory.path(of: "admin.sock")])
        #expect(refresh.transcript.contains("was moved to files elsewhere"), "\(refresh.transcript)")
        // The token in use still serves.
        #expect(try await proxy.get("http://api.test/").status == 200)
        #expect(endpoint.requests.count == 1)
    }

    @Test func `a store that can't work stops the start and the check, and says what to do without the password`()
        async throws
    {
        try folder.write("host=localhost password=hunter2 horse", to: "database")
        let check = try await RunningProxy.run(["check", "--config", try file("bad.yaml", postgres)])
        #expect(check.ending == .exited(78))
        #expect(check.errors.contains("store.connection"), "\(check.transcript)")
        #expect(!check.errors.contains("hunter2") && !check.errors.contains("horse"))
        try folder.write(server.connection + " dbname=template1", to: "database")
        let status = try await RunningProxy.run(["store", "status", "--config", try file("bad.yaml", postgres)])
        #expect(status.ending == .exited(78))
        #expect(status.errors.contains("store init"), "\(status.transcript)")
    }

    @Test func `doctor's advice fits what is wrong with the database, and costs no sign-in`() async throws {
        func said(_ connection: String) async throws -> String {
            try folder.write(connection, to: "database")
            let run = try await RunningProxy.run(
                ["doctor", "--no-token", "--config", try file("doctor.yaml", postgres)])
            #expect(run.ending == .exited(1), "\(run.transcript)")
            let lines = run.output.components(separatedBy: "\n")
            let index = try #require(lines.firstIndex { $0.contains("FAIL  store") }, "\(run.output)")
            let told = lines[index...].prefix(2).joined(separator: "\n")
            #expect(!told.contains("removed") && !told.contains("signs in anew"), "\(told)")
            return told
        }
        let away = try await said("host=127.0.0.1 port=\(try freePort()) user=postgres dbname=postgres sslmode=disable")
        #expect(away.contains("check that the database runs and that store.connection is right"), "\(away)")
        #expect(away.contains("remove nothing"), "\(away)")
        let bare = try await said(server.connection + " dbname=template1")
        #expect(bare.contains("run heimdallr-proxy store init"), "\(bare)")
        let role = "nothing\(UInt32.random(in: .min ... .max))"
        try await server.sql("CREATE ROLE \(role) LOGIN")
        let rightless = try await said("host=\(server.folder.path) port=\(server.port) user=\(role) dbname=postgres")
        #expect(rightless.contains("store init --sql --role"), "\(rightless)")
    }

    @Test func `the statements of the store can be printed, for whoever keeps the database`() async throws {
        let printed = try await RunningProxy.run(["store", "init", "--sql", "--role", "li\"mited"])
        #expect(printed.output.contains("CREATE TABLE IF NOT EXISTS heimdallr.token"))
        #expect(printed.output.contains("TO \"li\"\"mited\";"))
        #expect(!printed.output.contains("DELETE"))
    }
}
