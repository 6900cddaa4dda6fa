import Foundation
import TestSupport
import Testing

@Suite("the credentials of a shared store", .timeLimit(.minutes(3)))
struct StoreCredentialTests {
    @Test func `status and doctor say what the running proxy's database says, until its new password is in the file`()
        async throws
    {
        let server = try await PostgresServer.shared()
        let folder = try TemporaryDirectory()
        let role = "role\(UInt32.random(in: .min ... .max))"
        try await server.sql("CREATE ROLE \(role) LOGIN PASSWORD 'one'")
        func connection(_ user: String) -> String {
            "host=127.0.0.1 port=\(server.port) dbname=postgres sslmode=disable \(user)"
        }
        func configuration(_ connection: String) -> String {
            """
            store:
              {kind: postgres, space: e2e-\(role), connection: {file: \(connection)}, key: {file: \(folder.path)/key}}
            """
        }
        try folder.write([UInt8](repeating: 7, count: 32), to: "key")
        let admin = try folder.write(connection("user=postgres"), to: "admin")
        let used = try folder.write(connection("user=\(role) password=one"), to: "used")
        let other = try folder.write(connection("user=\(role) password=two"), to: "other")
        let start = try folder.write("upstreams: []\n" + configuration(admin), to: "init.yaml")
        let made = try await RunningProxy.run(["store", "init", "--role", role, "--config", start])
        try #require(made.ending == .exited(0), "\(made.transcript)")

        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin, admin: "", more: configuration(used))
        #expect(try await proxy.get("http://api.test/").status == 200)
        let file = proxy.directory.path + "/config.yaml"
        // The same proxy's configuration, but with credentials that are right already.
        let text = try String(contentsOfFile: file, encoding: .utf8).replacing(used, with: other)
        let right = try folder.write(text, to: "right.yaml")
        @Sendable func said(_ command: String...) async throws -> String { try await RunningProxy.run(command).output }

        #expect(try await !said("doctor", "--no-token", "--config", right).contains("the running proxy says"))
        try await server.sql("ALTER ROLE \(role) PASSWORD 'two'")
        try await server.sql("SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity WHERE usename = '\(role)'")
        try await eventually("status says it") {
            try await said("status", "--exit-zero", "--config", file).contains("password authentication failed")
        }
        let status = try await said("status", "--exit-zero", "--config", file)
        #expect(status.contains("what to do: correct user and password in store.connection"), "\(status)")
        let doctor = try await RunningProxy.run(["doctor", "--no-token", "--config", right])
        #expect(doctor.ending == .exited(1), "\(doctor.transcript)")
        #expect(doctor.output.contains("the database can be reached"), "\(doctor.output)")
        #expect(doctor.output.contains("the running proxy says: the token store"), "\(doctor.output)")
        #expect(doctor.output.contains("correct user and password"), "\(doctor.output)")

        try connection("user=\(role) password=two").write(toFile: used, atomically: true, encoding: .utf8)
        try await eventually("the new password is in use") {
            try await !said("status", "--exit-zero", "--config", file).contains("authentication failed")
        }
        #expect(try await !said("doctor", "--no-token", "--config", right).contains("the running proxy says"))
    }
}
