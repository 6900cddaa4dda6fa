import Foundation
import TestSupport
import Testing

@Suite("each caller's own token is exchanged for one of theirs", .timeLimit(.minutes(5)))
struct CallerExchangeTests {
    /// The API's report of an accepted request.
    private struct Report: Decodable {
        var who: String
        var token: String
        var authorization: [String]

        init(_ response: RawResponse) throws {
            guard response.status == 200 else { throw TestFailure("\(response.status): \(response.text)") }
            self = try JSONDecoder().decode(Report.self, from: Data(response.body))
        }
    }

    private func proxy(_ server: AuthorizationServer, more: String = "", _ top: String = "") async throws
        -> RunningProxy
    {
        try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            admin: {listen: 127.0.0.1:0, socket: FOLDER/admin.sock}
            store: {kind: file, directory: FOLDER/store, key: {file: FOLDER/key}}
            \(top)
            clients:
              api:
                grant_type: token-exchange
                token_endpoint: \(server.tokenEndpoint)
                allow_plaintext: true
                client_id: sidecar
                client_secret: {file: FOLDER/secret}
                subject_token: caller
                audience: api
            upstreams:
              - host: api.test
                url: \(server.url)
                client: api
                allow_plaintext: true
            \(more.indented(4))
            """, files: ["secret": "hush", "key": String(repeating: "k", count: 32)])
    }

    private func get(_ proxy: RunningProxy, as caller: String, _ method: String = "GET") async throws -> RawResponse {
        try await proxy.send(method, "http://api.test/api/x", fields: [("Authorization", "Bearer \(caller)")])
    }

    /// `header.payload.signature` with a meaningless signature.
    private func token(of subject: String, endsIn seconds: Int) -> String {
        let claims = #"{"sub":"\#(subject)","exp":\#(Int(Date().timeIntervalSince1970) + seconds)}"#
        let payload = claims.base64.replacing("+", with: "-").replacing("/", with: "_").replacing("=", with: "")
        return "eyJhbGciOiJub25lIn0.\(payload).c2ln"
    }

    private func admin(_ proxy: RunningProxy, _ target: String) async throws -> String {
        let line = try await eventually("the administration listens") {
            proxy.log.split(separator: "\n").first { $0.contains(" info administration ") }
        }
        let address = line.split(separator: " ").first { $0.hasPrefix("address=") }?.dropFirst(8) ?? ""
        let port = UInt16(address.split(separator: ":").last ?? "") ?? 0
        return try await RawClient.exchange(
            port: port, "GET \(target) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\n\r\n"
        ).text
    }

    @Test func `two callers get a token each, exchanged once, and their own goes no further`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server)
        #expect(try await admin(proxy, "/readyz").contains("ready"))
        #expect(try server.asked().isEmpty)
        for _ in 0..<3 {
            for caller in ["alice", "plain-bob", "refresh-carol"] {
                let report = try Report(try await get(proxy, as: caller))
                #expect(report.who == caller)
                #expect(report.authorization == ["Bearer \(report.token)"])
            }
        }
        let asked = try server.asked()
        #expect(asked.map { $0["subject_token"] as? String } == ["alice", "plain-bob", "refresh-carol"])
        #expect(
            asked.allSatisfy {
                $0["subject_token_type"] as? String == "urn:ietf:params:oauth:token-type:access_token"
                    && $0["audience"] as? String == "api"
            })
        #expect(try await admin(proxy, "/metrics").contains(#"heimdallr_callers{client="api"} 3"#))
        let status = try await admin(proxy, "/status")
        #expect(status.contains(#""callers": 3"#) && status.contains(#""state": "ready""#), "\(status)")
        #expect(try await admin(proxy, "/readyz?strict").contains("ready"))
        // Nothing of a caller is written down.
        let stored = try FileManager.default.subpathsOfDirectory(atPath: proxy.directory.path + "/store")
        #expect(stored.filter { $0.contains("api") } == [])
        for caller in ["alice", "plain-bob"] { #expect(!proxy.log.contains(caller)) }
    }

    @Test func `a request without exactly one Bearer token of its own is told so`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server)
        let wrong: [[(String, String)]] = [
            [], [("Authorization", "Basic YTpi")], [("Authorization", "Bearer")], [("Authorization", "Bearer a b")],
            [("Authorization", "Bearer a"), ("Authorization", "Bearer b")],
            [("Authorization", "Bearer a"), ("Connection", "Authorization")],
            [("Authorization", "Bearer " + String(repeating: "a", count: 17_000))],
        ]
        for fields in wrong {
            let response = try await proxy.get("http://api.test/api/x", fields: fields)
            #expect(response.status == 401)
            #expect(response.field("WWW-Authenticate") == "Bearer")
            #expect(response.text.contains("urn:heimdallr-proxy:problem:caller-token-needed"))
            #expect(proxyError(of: response) == "http_request_denied")
        }
        #expect(try server.asked().isEmpty)
    }

    @Test func `a caller that is refused is told so, is not asked for again, and hits nobody else`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server)
        #expect(try Report(try await get(proxy, as: "alice")).who == "alice")
        for _ in 0..<5 {
            let response = try await get(proxy, as: "refused-mallory")
            #expect(response.status == 401)
            #expect(response.field("WWW-Authenticate") == #"Bearer error="invalid_token""#)
            #expect(response.text.contains("urn:heimdallr-proxy:problem:caller-token-refused"))
            #expect(!response.text.contains("mallory"))
        }
        #expect(try await get(proxy, as: "elsewhere").status == 502)
        #expect(try await get(proxy, as: "noaccess").status == 502)
        #expect(try Report(try await get(proxy, as: "alice")).who == "alice")
        #expect(try Report(try await get(proxy, as: "bob")).who == "bob")
        let asked = try server.asked().compactMap { $0["subject_token"] as? String }
        #expect(asked == ["alice", "refused-mallory", "elsewhere", "noaccess", "bob"])
        #expect(!proxy.log.contains("mallory"))
    }

    @Test func `each exchanged token has its own end, and none outlives the caller's`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server)
        let ending = token(of: "alice", endsIn: 4)
        let first = try Report(try await get(proxy, as: "short-bob"))
        let alice = try Report(try await get(proxy, as: ending))
        #expect(alice.who == "alice")
        // Bob's lives for two seconds. Hers goes on.
        try await eventually("another token for Bob") {
            try Report(try await get(proxy, as: "short-bob")).token != first.token
        }
        #expect(try Report(try await get(proxy, as: ending)).token == alice.token)
        let refused = try await eventually("a refusal") {
            let response = try await get(proxy, as: ending)
            return response.status == 200 ? nil : response
        }
        #expect(refused.status == 401)
        #expect(refused.text.contains("caller-token-refused"))
        #expect(try await get(proxy, as: token(of: "alice", endsIn: -1)).status == 401)
        let asked = try server.asked().compactMap { $0["subject_token"] as? String }
        #expect(asked == ["short-bob", ending, "short-bob"])
    }

    @Test func `a reload keeps the callers' tokens, unless they are for another audience`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server)
        let alice = try Report(try await get(proxy, as: "alice"))
        let file = proxy.directory.path + "/config.yaml"
        let text = try String(contentsOfFile: file, encoding: .utf8)
        func reload(_ text: String) async throws {
            try proxy.directory.write(text, to: "config.yaml")
            let command = try await RunningProxy.run(["reload", "--config", file])
            #expect(command.ending == .exited(0), "\(command.transcript)")
        }
        try await reload(text.replacing("audience: api", with: "audience: api\n    timeout: 7s"))
        #expect(try Report(try await get(proxy, as: "alice")).token == alice.token)
        #expect(try server.asked().count == 1)
        try await reload(text.replacing("audience: api", with: "audience: other"))
        #expect(try Report(try await get(proxy, as: "alice")).token != alice.token)
        #expect(try server.asked().map { $0["audience"] as? String } == ["api", "other"])
    }

    @Test func `an upstream that refuses one caller's token gets another, and nobody else's changes`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server)
        let alice = try Report(try await get(proxy, as: "alice"))
        let bob = try Report(try await get(proxy, as: "bob"))
        try await server.revokeTokens()
        // A second lies between two exchanges of one caller.
        let again = try await eventually("the next one") {
            let response = try await get(proxy, as: "alice")
            return response.status == 200 ? try Report(response) : nil
        }
        #expect(again.who == "alice" && again.token != alice.token)
        #expect(try Report(try await get(proxy, as: "alice")).token == again.token)
        let asked = try server.asked().compactMap { $0["subject_token"] as? String }
        #expect(asked == ["alice", "bob", "alice"])
        #expect(try Report(try await get(proxy, as: "bob")).token != bob.token)
    }

    @Test func `the caller's token stops at the proxy wherever the new one goes, on TRACE too`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server, more: "inject: {header: X-Token, scheme: \"\"}")
        #expect(try await get(proxy, as: "alice", "TRACE").text == #"{"authorization": []}"#)
        let report = try Report(try await get(proxy, as: "alice"))
        #expect(report.who == "alice" && report.authorization == [])
    }

    @Test func `fifty requests of one caller at once are one exchange`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server)
        try await withThrowingTaskGroup(of: String.self) { group in
            for number in 0..<50 { group.addTask { try Report(try await get(proxy, as: "caller-\(number % 2)")).who } }
            for try await _ in group {}
        }
        #expect(try server.asked().count == 2)
    }

    @Test func `a program that makes up tokens can't have one request each, and who is known is served`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server)
        #expect(try Report(try await get(proxy, as: "alice")).who == "alice")
        let before = ContinuousClock.now
        var statuses: [Int: Int] = [:]
        try await withThrowingTaskGroup(of: Int.self) { group in
            for worker in 0..<8 {
                group.addTask {
                    var refused = 0
                    for number in 0..<100 {
                        if try await get(proxy, as: "refused-\(worker)-\(number)").status == 503 { refused += 1 }
                    }
                    return refused
                }
            }
            for try await refused in group { statuses[503, default: 0] += refused }
        }
        let seconds = (ContinuousClock.now - before) / .seconds(1)
        let asked = try server.asked().count
        #expect(Double(asked) <= 256 + 10 * seconds + 2)
        if seconds < 40 { #expect(statuses[503, default: 0] > 0, "\(asked) in \(seconds) s") }
        #expect(try Report(try await get(proxy, as: "alice")).who == "alice")
        let pushedBack = try await get(proxy, as: "refused-at-last")
        if pushedBack.status == 503 {
            #expect(pushedBack.field("Retry-After") != nil)
            #expect(pushedBack.text.contains("too-many-callers"))
        }
    }

    @Test func `a thousand callers at the most are held, in bounded memory`() async throws {
        let server = try await AuthorizationServer(.grants())
        let proxy = try await proxy(server)
        #expect(try Report(try await get(proxy, as: "alice")).who == "alice")
        let before = try proxy.process.residentMemory()
        let padding = String(repeating: "x", count: 1000)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for worker in 0..<4 {
                group.addTask {
                    for number in 0..<300 {
                        _ = try Report(try await get(proxy, as: "caller-\(worker)-\(number)-\(padding)"))
                    }
                }
            }
            try await group.waitForAll()
        }
        #expect(try await admin(proxy, "/metrics").contains(#"heimdallr_callers{client="api"} 1000"#))
        let grown = try proxy.process.residentMemory() - before
        #expect(grown < 24 << 20, "\(grown / 1024) KiB for 1000 callers")
    }
}
