import Foundation
import TestSupport
import Testing

@Suite("the audit stream says who was given which credential", .timeLimit(.minutes(3)))
struct AuditTests {
    /// Lines as they stand in the file `name` of the proxy's folder, or in its log.
    private func lines(_ proxy: RunningProxy, _ name: String? = "audit.jsonl") -> [[String: Any]] {
        let text = name.map { (try? proxy.directory.read($0)) ?? "" } ?? proxy.log
        return text.split(separator: "\n").compactMap { line in
            (try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]).flatMap {
                $0["audit"] == nil ? nil : $0
            }
        }
    }

    private func wait(
        for count: Int, _ proxy: RunningProxy, _ name: String? = "audit.jsonl"
    ) async throws -> [[String: Any]] {
        try await eventually("\(count) lines") { lines(proxy, name).count >= count }
        // A line too many would come with the others.
        try await holds("\(count) lines", for: .milliseconds(50)) { lines(proxy, name).count == count }
        return lines(proxy, name)
    }

    private static let upstreams = """
          - {host: plain.test, url: ORIGIN, allow_plaintext: true}
          - {host: key.test, url: ORIGIN, allow_plaintext: true, inject: {header: X-Api-Key, value: {file: FOLDER/key}}}
          - {host: gone.test, url: "http://127.0.0.1:1", client: api, allow_plaintext: true}
          - {host: kept.test, url: ORIGIN, client: api, allow_plaintext: true, on_existing: keep}
        """

    private static let alice = #"al"ice", "audit" \ given"#

    private static func authorization(_ user: String, _ password: String) -> (String, String) {
        ("Proxy-Authorization", "Basic " + Data("\(user):\(password)".utf8).base64EncodedString())
    }

    @Test func `each credential that was given or denied is a line, with nothing that was sent`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin, proxy: "users: {'\(Self.alice)': {file: FOLDER/password}}", upstream: "methods: [GET]",
            admin: "",
            more: Self.upstreams.replacing("ORIGIN", with: origin.url) + "\naudit: {file: FOLDER/audit.jsonl}",
            files: ["password": "secret-password", "key": "secret-key"])
        let me = Self.authorization(Self.alice, "secret-password")
        let extra = [("X-Request-Id", "secret-id"), ("X-Mine", "secret-field\u{e9}"), ("User-Agent", "secret-agent")]
        func get(_ host: String, _ more: [(String, String)] = [], method: String = "GET") async throws -> Int {
            try await proxy.send(method, "http://\(host)/secret-path?secret-query", fields: [me] + extra + more).status
        }
        #expect(try await get("api.test") == 200)
        #expect(try await get("key.test") == 200)
        // Neither was given one, nor denied one.
        #expect(try await get("plain.test") == 200)
        #expect(try await get("kept.test", [("Authorization", "Bearer secret-own")]) == 200)
        #expect(try await RawClient.exchange(port: proxy.port, "nonsense\r\n\r\n").status == 400)
        #expect(try await get("api.test", method: "DELETE") == 403)
        #expect(try await get("unknown.test") == 403)
        #expect(try await get("gone.test") == 502)
        let stranger = Self.authorization("mallory\",\"user\":\"root", "secret-guess")
        #expect(try await proxy.get("http://api.test/", fields: [stranger]).status == 407)

        let all = try await wait(for: 6, proxy)
        let listener = proxy.listeners[0].address
        let expected: [[String: String]] = [
            ["audit": "given", "status": "200", "upstream": "api.test", "rule": "upstreams[0]", "client": "api"],
            ["audit": "given", "status": "200", "upstream": "key.test", "rule": "upstreams[2]", "inject": "X-Api-Key"],
            ["audit": "denied", "status": "403", "reason": "not-covered"],
            ["audit": "denied", "status": "403", "reason": "no-upstream"],
            [
                "audit": "denied", "status": "502", "reason": "connection-refused", "upstream": "gone.test",
                "rule": "upstreams[3]", "client": "api",
            ],
            ["audit": "denied", "status": "407", "reason": "user-required"],
        ]
        for (index, (line, expected)) in zip(all, expected).enumerated() {
            var line = line.mapValues { "\($0)" }
            #expect(line.removeValue(forKey: "time")?.hasSuffix("Z") == true)
            #expect(line.removeValue(forKey: "peer")?.hasPrefix("127.0.0.1:") == true)
            #expect(line.removeValue(forKey: "listener") == listener)
            #expect(line.removeValue(forKey: "user") == (index == 5 ? nil : Self.alice))
            if let inject = expected["inject"] {
                #expect(line["inject"]?.contains(inject) == true)
                line["inject"] = inject
            }
            #expect(line == expected)
        }
        let text = try proxy.directory.read("audit.jsonl")
        #expect(!text.contains("secret-guess") && !text.contains("mallory") && !text.contains(TokenEndpoint.plainToken))
        try await eventually("all are counted") {
            try await metrics(proxy).contains("heimdallr_audit_lines_total{result=\"written\"} 6")
        }
        #expect(try await metrics(proxy).contains("heimdallr_audit_lines_total{result=\"dropped\"} 0"))
    }

    private func metrics(_ proxy: RunningProxy) async throws -> String {
        let (_, port, _) = try await proxy.administration()
        return try await RawClient.exchange(
            port: port, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
        ).text
    }

    @Test func `a local program is known in the audit by its uid, and a token that does not come is a denial`()
        async throws
    {
        let origin = try RecordingOrigin { try $0.respond($0.head.target == "/refused" ? 401 : 200) }
        let endpoint = try TokenEndpoint { _, number in number == 0 ? .token("T1", expiresIn: "1") : .status(503) }
        let proxy = try await RunningProxy(
            to: origin, proxy: "listen: unix:FOLDER/h.sock", upstream: "token_wait: 500ms", tokenEndpoint: endpoint,
            more: "audit: stderr")
        let path = proxy.directory.path + "/h.sock"
        @Sendable func get(_ target: String) async throws -> Int {
            let client = try await RawClient.connect(unix: path)
            try await client.send("GET http://api.test\(target) HTTP/1.1\r\nHost: api.test\r\n\r\n")
            return try await client.response().status
        }
        #expect(try await get("/") == 200)
        let statuses = Recorder<Int>()
        try await eventually("the token has expired") {
            statuses.append(try await get("/"))
            return statuses.all.last == 503
        }
        let all = try await wait(for: statuses.all.count + 1, proxy, nil).suffix(2)
        for line in all {
            #expect(line["uid"] as? Int == Int(getuid()))
            #expect(line["listener"] as? String == "unix:\(path)")
            #expect(line["peer"] == nil)
        }
        #expect(all.map { $0["audit"] as? String } == ["given", "denied"])
        #expect(all.map { $0["reason"] as? String } == [nil, "no-token"])
    }

    @Test func `the audit stream goes on in a new file after SIGHUP, and changes with the configuration`() async throws
    {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin, admin: "", more: "audit: {file: FOLDER/audit.jsonl}")
        let kept = try await RawClient.connect(port: proxy.port)
        func get() async throws {
            try await kept.send("GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\r\n")
            #expect(try await kept.response().status == 200)
        }
        let file = proxy.directory.path + "/audit.jsonl"
        try await get()
        _ = try await wait(for: 1, proxy)
        try FileManager.default.moveItem(atPath: file, toPath: file + ".1")
        try await get()
        _ = try await wait(for: 2, proxy, "audit.jsonl.1")
        proxy.process.signal(SIGHUP)
        try await eventually("a new file") { FileManager.default.fileExists(atPath: file) }
        try await get()
        _ = try await wait(for: 1, proxy)
        _ = try await wait(for: 2, proxy, "audit.jsonl.1")

        let configuration = proxy.directory.path + "/config.yaml"
        let text = try String(contentsOfFile: configuration, encoding: .utf8)
        func reload(_ audit: String, expecting ending: ChildProcess.Ending = .exited(0)) async throws -> ChildProcess {
            try proxy.directory.write(
                text.replacing("audit: {file: \(file)}", with: audit), to: "config.yaml")
            let run = try await RunningProxy.run(["reload", "--config", configuration])
            #expect(run.ending == ending, "\(run.transcript)")
            return run
        }
        let wrong = try await reload("audit: {file: /nowhere/audit}", expecting: .exited(78))
        #expect(wrong.errors.contains("audit.file: /nowhere/audit can't be opened: No such file or directory."))
        try await get()
        _ = try await wait(for: 2, proxy)
        _ = try await reload("audit: {file: \(file).other}")
        try await get()
        let other = try await wait(for: 1, proxy, "audit.jsonl.other")
        #expect((other[0]["peer"] as? String)?.hasPrefix("127.0.0.1:") == true)
        _ = try await reload("audit: stderr")
        try await get()
        _ = try await wait(for: 1, proxy, nil)
        _ = try await reload("")
        try await get()
        _ = try await wait(for: 2, proxy)
        _ = try await wait(for: 1, proxy, "audit.jsonl.other")
        _ = try await wait(for: 1, proxy, nil)
        try await eventually("all are counted") {
            try await metrics(proxy).contains("heimdallr_audit_lines_total{result=\"written\"} 6")
        }
    }

    @Test func `a full disk holds no request, and lost audit lines are told where there is room`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin, admin: "", more: "audit: {file: FOLDER/audit.jsonl}", under: ["prlimit", "--fsize=2000"])
        let count = 40
        for _ in 0..<count { #expect(try await proxy.get("http://api.test/").status == 200) }
        try await eventually("the log says so") { [proxy] in
            proxy.log.contains("the audit file can't be written: lines are dropped and counted, and requests go on")
        }
        let file = proxy.directory.path + "/audit.jsonl"
        try FileManager.default.moveItem(atPath: file, toPath: file + ".1")
        proxy.process.signal(SIGHUP)
        try await eventually("what is missing is said") {
            lines(proxy).contains { $0["audit"] as? String == "dropped" }
        }
        let missing = lines(proxy).compactMap { $0["count"] as? Int }.reduce(0, +)
        let written =
            lines(proxy, "audit.jsonl.1").count + lines(proxy).count(where: { $0["audit"] as? String == "given" })
        #expect(missing > 0 && missing + written == count)
        #expect(try await metrics(proxy).contains("heimdallr_audit_lines_total{result=\"dropped\"} \(missing)"))
    }

    @Test func `an audit file that can't be had is an error at start`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(
            "proxy: {listen: 127.0.0.1:0}\naudit: {file: /nowhere/audit}\nupstreams: [{host: a.test}]",
            to: "config.yaml")
        let run = try await RunningProxy.run(["serve", "--config", file])
        // The folder may come later.
        #expect(run.ending == .exited(1), "\(run.transcript)")
        #expect(
            run.errors.contains("audit.file: /nowhere/audit can't be opened: No such file or directory. Name a file"))
    }
}
