import Foundation
import Heimdallr
import Synchronization
import TestSupport
import Testing

@testable import PostgresStore

/// A connection string that changes, and what a command would have cached.
private final class Rotating: Sendable {
    let current: Mutex<Secret>
    let cached: Mutex<Secret>

    init(_ text: String) {
        current = Mutex(Secret(text))
        cached = Mutex(Secret(text))
    }

    func set(_ text: String) { current.withLock { $0 = Secret(text) } }
}

@Suite struct `The credentials of the database` {
    private let database: Postgres
    private let role = "role\(UInt32.random(in: .min ... .max))"

    init() async throws {
        database = try await Postgres()
        // A GRANT on the tables, which all tests share, fails when another test grants at the same moment.
        try await database.server.sql("CREATE ROLE \(role) LOGIN PASSWORD 'one' IN ROLE limited")
    }

    private var server: String {
        "host=127.0.0.1 port=\(database.server.port) user=\(role) dbname=postgres sslmode=disable"
    }

    private func endConnections() async throws {
        try await database.server.sql(
            "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '\(role)'")
    }

    private func refusals() -> Int {
        database.server.log.components(separatedBy: "password authentication failed for user \"\(role)\"").count - 1
    }

    @Test(
        "a rotated password is taken over without a restart, from a file or from a command that has it cached",
        arguments: [false, true])
    func rotated(isCached: Bool) async throws {
        let text = Rotating("\(server) password=one")
        let store = try await database.store("\(server) password=one") {
            $0.connectionSource = { wasRefused in
                let current = text.current.withLock { $0 }
                if wasRefused || !isCached { text.cached.withLock { $0 = current } }
                return text.cached.withLock { $0 }
            }
        }
        try await store.save(record(1, "R1"), client: "billing")
        try await database.server.sql("ALTER ROLE \(role) PASSWORD 'two'")
        text.set("\(server) password=two")
        try await endConnections()
        try await eventually("the new password counts") { (try? await store.load(client: "billing")) != nil }
        #expect(refusals() <= 1, "\(refusals())")
        #expect(store.fault == nil)
    }

    @Test("a password that comes to its file after the database refused the old one ends the pause")
    func late() async throws {
        let text = Rotating("\(server) password=one")
        let store = try await database.store("\(server) password=one") {
            $0.connectionSource = { _ in text.current.withLock { $0 } }
        }
        try await database.server.sql("ALTER ROLE \(role) PASSWORD 'two'")
        try await endConnections()
        try await eventually("it is refused several times") { refusals() >= 2 }
        #expect(store.fault?.description.contains("the proxy reads the secret again") == true, "\(store.fault as Any)")
        // A string that can't be used replaces nothing, and is named.
        text.set("host=127.0.0.1 sslmode=no-verify")
        try await eventually("it is named") { store.fault?.description.contains("no-verify") == true }
        text.set("\(server) password=two")
        try await eventually("the new password counts") {
            do { return try await store.load(client: "billing") == nil } catch { return false }
        }
        #expect(store.fault == nil)
    }

    @Test("a password file and the key of a client certificate are read for each connection")
    func passfile() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write("*:*:*:\(role):one\n", to: "pass")
        _ = unsafe chmod(file, 0o600)
        let store = try await database.store("\(server) passfile=\(file)")
        try await database.server.sql("ALTER ROLE \(role) PASSWORD 'two'")
        try folder.write("*:*:*:\(role):two\n", to: "pass")
        _ = unsafe chmod(file, 0o600)
        try await endConnections()
        try await eventually("the new file counts") {
            do { return try await store.load(client: "billing") == nil } catch { return false }
        }
        let fault = await storeFault { _ = try await database.store(server) }
        #expect(fault?.description.contains("passfile=") == true, "\(fault as Any)")
    }

    @Test("refused credentials are tried once for each attempt, however many servers and addresses the list has")
    func once() async throws {
        let libpq = try Libpq.load()
        let port = database.server.port
        let target = try ConnectionTarget(
            Secret(
                "host=127.0.0.1,localhost,127.0.0.1 port=\(port) user=\(role) dbname=postgres sslmode=disable password=x"
            ),
            anchors: nil, libpq)
        let link = PostgresLink(target, libpq)
        #expect(throws: PostgresFault.self) { try link.open(by: .now + .seconds(20)) }
        try await eventually("the server has logged it") { refusals() >= 1 }
        #expect(refusals() == 1)
    }

    @Test("pauses after refused credentials grow to 30 s, and a changed secret ends them")
    func pauses() {
        let start = ContinuousClock.now
        let refusal = PostgresFault(kind: .refused("28P01"), text: "no")
        var reach = Reachability()
        var now = start
        for _ in 0..<20 { reach.failed(.lost("away"), now: now, random: 1) }
        var tries: [Duration] = []
        for _ in 0..<10 {
            reach.failed(refusal, now: now, random: 1)
            tries.append(now.duration(to: reach.nextTry(now: now)))
            now = reach.nextTry(now: now)
        }
        #expect(tries.first == .seconds(1))
        #expect(tries.last == .seconds(30))
        #expect(tries == tries.sorted())
        reach.failed(refusal, now: now, random: 1)
        reach.retry(now: now)
        #expect(!reach.isKnownAway(now: now))
    }
}
