import Foundation
import TestSupport
import Testing

@Suite("fixed credentials, with the executable", .timeLimit(.minutes(2)))
struct InjectionTests {
    @Test func `keys from files and variables are injected, change without a restart, and show nowhere`() async throws {
        let origin = try RecordingOrigin()
        let key = "key-Zk4711Zk-one"
        let changed = "key-Zk4711Zk-two"
        let proxy = try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            admin: {listen: 127.0.0.1:0, socket: FOLDER/admin.sock}
            upstreams:
              - host: key.test
                url: \(origin.url)
                allow_plaintext: true
                inject:
                  - {header: X-Api-Key, value: {file: FOLDER/key}}
                  - {basic: {username: alice, password: {env: MAIL_PASSWORD}}}
                  - {query: k, value: {file: FOLDER/key}}
              - host: dummy.test
                url: \(origin.url)
                allow_plaintext: true
                require_placeholder: DUMMY
                inject: {header: Authorization, scheme: Token, value: {file: FOLDER/key}}
            """, files: ["key": key + "\n"], environment: ["MAIL_PASSWORD": "pass-Zk4711Zk"])
        #expect(try await proxy.get("http://key.test/x", fields: [("Authorization", "Bearer mine")]).status == 200)
        let first = try #require(origin.requests.last)
        #expect(first.target == "/x?k=\(key)")
        #expect(first.values("X-Api-Key") == [key])
        #expect(first.values("Authorization") == ["Basic " + Data("alice:pass-Zk4711Zk".utf8).base64EncodedString()])

        _ = try await proxy.get("http://dummy.test/", fields: [("Authorization", "Bearer DUMMY")])
        #expect(origin.requests.last?.values("Authorization") == ["Token \(key)"])
        _ = try await proxy.get("http://dummy.test/", fields: [("Authorization", "Bearer mine")])
        #expect(origin.requests.last?.values("Authorization") == ["Bearer mine"])

        try proxy.directory.write(changed + "\n", to: "key")
        try await eventually("the changed key") {
            _ = try await proxy.get("http://key.test/")
            return origin.requests.last?.values("X-Api-Key") == [changed]
        }

        let socket = proxy.directory.path + "/admin.sock"
        var said = ""
        for verb in [["status"], ["status", "--json"], ["why", "GET", "http://key.test/"]] {
            let run = try await RunningProxy.run(verb + ["--socket", socket])
            #expect(run.ending == .exited(0), "\(run.transcript)")
            #expect(run.output.contains("X-Api-Key: "), "\(run.output)")
            said += run.transcript
        }
        let trace = try await RunningProxy.run(["why", "TRACE", "http://key.test/", "--socket", socket])
        #expect(trace.output.contains("TRACE carries no credential"), "\(trace.output)")
        let check = try await RunningProxy.run(
            ["check", "--config", proxy.directory.path + "/config.yaml"],
            environment: ["MAIL_PASSWORD": "pass-Zk4711Zk"])
        #expect(
            check.output.contains("X-Api-Key: <secret>, Authorization: Basic <secret>, ?k=<secret>"), "\(check.output)")
        #expect(try await proxy.terminate() == .exited(0))
        for text in [said, check.transcript, proxy.log] {
            #expect(!text.contains("Zk4711Zk"), "\(text)")
        }
    }

    @Test func `a credential that goes bad is logged by its place`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            upstreams:
              - host: key.test
                url: \(origin.url)
                allow_plaintext: true
                inject: {header: X-Api-Key, value: {file: FOLDER/key}}
            """, files: ["key": "good-Zk4711Zk\n"])
        try proxy.directory.write("bad-Zk4711Zk\r\nX-Evil: 1\n", to: "key")
        try await eventually("a line in the log") { proxy.log.contains("a credential can't be read") }
        #expect(proxy.log.contains("upstreams[0].inject[0] (X-Api-Key: <secret>)"), "\(proxy.log)")
        #expect(!proxy.log.contains("Zk4711Zk"))
        _ = try await proxy.get("http://key.test/")
        #expect(origin.requests.last?.values("X-Api-Key") == ["good-Zk4711Zk"])
    }
}
