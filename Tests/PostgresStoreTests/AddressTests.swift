import Foundation
import Heimdallr
import TestSupport
import Testing

@testable import PostgresStore

@Suite("a database whose name has several addresses")
struct AddressTests {
    private static let canMount: Bool = {
        guard geteuid() == 0 else { return false }
        let probe = Process()
        probe.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        probe.arguments = ["--mount", "true"]
        guard (try? probe.run()) != nil else { return false }
        probe.waitUntilExit()
        return probe.terminationStatus == 0
    }()

    /// The order in which getaddrinfo(3) returns two addresses of the loopback interface depends on their distance from
    /// 127.0.0.1: the silent one is nearer.
    @Test(.enabled(if: canMount, "a separate /etc/hosts needs root"))
    func `the second address of a database is reached while the first is silent`() async throws {
        let database = try await Postgres()
        let deaf = try DeafPort(host: 0x7f00_0002, port: database.server.port)
        let folder = try TemporaryDirectory()
        let hosts = try folder.write("127.0.0.1 localhost\n127.0.0.2 two.test\n127.0.0.4 two.test\n", to: "hosts")
        let contender = try database.contender(
            "R", under: ["unshare", "--mount", "sh", "-c", "mount --bind '\(hosts)' /etc/hosts && exec \"$0\" \"$@\""],
            environment: [
                "CONNECTION": "host=two.test port=\(deaf.port) user=postgres dbname=postgres sslmode=disable"
            ])
        #expect(try await contender.ended() == .exited(0))
        #expect(contender.output.contains("saved"), "\(contender.output)")
    }
}
