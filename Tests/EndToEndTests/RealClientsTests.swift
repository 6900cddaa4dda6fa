import Foundation
import TestSupport
import Testing

/// Every client walks the same course (`Fixtures/course*`): a GET, a POST with a length, one in chunks, a large answer,
/// HEAD, and DELETE that is answered by 204.
@Suite("real clients", .timeLimit(.minutes(5)))
struct RealClientsTests {
    struct Client: Sendable, CustomTestStringConvertible {
        var name: String
        var sendsChunks = true
        /// The command that walks the course at a base URL, through a proxy if there is one.
        var command: @Sendable (_ base: String, _ proxy: String?) throws -> [String]
        var testDescription: String { name }
    }

    static let clients =
        ["curl", "wget"].map { name in
            Client(name: name, sendsChunks: name != "wget") { base, _ in ["sh", fixture("course.sh"), name, base] }
        }
        + ["requests", "httpx", "aiohttp", "urllib"].map { name in
            Client(name: "Python \(name)") { base, _ in
                [try Repository.python(), fixture("course.py"), name, base]
            }
        } + [
            Client(name: "Node http") { base, _ in ["node", fixture("course.js"), base] },
            Client(name: "Go net/http") { base, _ in ["go", "run", fixture("course.go"), base] },
        ]
        + ["HttpClient", "URLConnection"].map { name in
            Client(name: "Java \(name)") { base, proxy in
                let proxy = proxy.flatMap { URL(string: $0) }.map {
                    ["-Dhttp.proxyHost=\($0.host ?? "")", "-Dhttp.proxyPort=\($0.port ?? 0)"]
                }
                return ["java", "-XX:TieredStopAtLevel=1"] + (proxy ?? []) + [fixture("CourseOf\(name).java"), base]
            }
        }

    private static func origin() throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            switch (exchange.head.method, exchange.head.target) {
            case ("POST", _): try exchange.respond(body: "\(try exchange.readBody().bodyCount)")
            case ("DELETE", _): try exchange.send("HTTP/1.1 204 Gone\r\n\r\n")
            case (_, "/v1/big"):
                try exchange.startChunked()
                for _ in 0..<64 { try exchange.chunk(String(repeating: "b", count: 16 * 1024)) }
                try exchange.lastChunk()
            default: try exchange.respond(body: "hello")
            }
        }
    }

    private static let none: [String: String?] = [
        "http_proxy": nil, "HTTP_PROXY": nil, "https_proxy": nil, "no_proxy": nil, "NO_PROXY": nil, "ALL_PROXY": nil,
        "all_proxy": nil,
    ]

    @Test(arguments: clients, [true, false])
    func `each real client gets bodies up and down, its head and its deletion through the proxy`(
        client: Client, asProxy: Bool
    ) async throws {
        let origin = try Self.origin()
        let proxy = try await RunningProxy(to: origin, upstream: "listen: 127.0.0.1:0", listeners: 2)
        let base = asProxy ? "http://api.test/v1" : "http://127.0.0.1:\(proxy.upstreamPort)/v1"
        var environment = Self.none
        if asProxy { environment["http_proxy"] = proxy.url }
        let output = try await ChildProcess.output(
            of: try client.command(base, asProxy ? proxy.url : nil), environment: environment,
            within: .seconds(150))
        let lines = output.split(separator: "\n").map { $0.trimmingSuffix(while: { $0 == " " }) }
        #expect(
            lines == [
                "get 200 hello", "post 200 11", "chunked 200 200000", "big 200 1048576", "head 200", "delete 204",
            ]
        )
        let requests = origin.requests
        #expect(
            requests.map { "\($0.method) \($0.target)" } == [
                "GET /v1/items?x=1", "POST /v1/count", "POST /v1/count", "GET /v1/big", "HEAD /v1/items?x=1",
                "DELETE /v1/items?x=1",
            ])
        #expect(requests[2].framing == (client.sendsChunks ? .chunked : .length(200_000)))
        for request in requests {
            #expect(request.values("Authorization") == ["Bearer \(token)"])
            #expect(request.values("Host") == [origin.authority])
            for name in ["Upgrade", "HTTP2-Settings", "Connection", "Proxy-Connection", "Keep-Alive", "TE"] {
                #expect(request.values(name).isEmpty)
            }
        }
        #expect(origin.problems.isEmpty)
        #expect(proxy.tokenRequests == 1)
    }

    @Test(arguments: [true, false])
    func `a signed request arrives as it was signed`(isKept: Bool) async throws {
        let origin = try Server([try Repository.python(), fixture("signature_origin.py")])
        let endpoint = try TokenEndpoint.plain()
        // Host is signed: the upstream's authority must be what the program says.
        let authority = "localhost:\(try await origin.port())"
        let kept = ProxyConfiguration.upstream(authority, url: "http://\(authority)", "on_existing: keep")
        let unsigned = "  - {host: \"\(authority)\", url: \"http://\(authority)\"}"
        let proxy = try await RunningProxy(
            ProxyConfiguration(tokenEndpoint: endpoint.url, upstreams: isKept ? kept : unsigned))
        let output = try await ChildProcess.output(
            of: [try Repository.python(), fixture("signed_put.py"), "http://\(authority)", proxy.url],
            environment: Self.none)
        #expect(output == "put 200\nput 200\nlist 200\n", "\(origin.process.transcript)")
        // And the server would have noticed.
        let tampered = try await proxy.get(
            "http://\(authority)/bucket/plain.txt", fields: [("Authorization", "AWS4-HMAC-SHA256 of somebody else")])
        #expect(tampered.status == 403)
    }

    /// As one of `proxy.users`, where a program has to be.
    private static let users = "users: {alice: {file: FOLDER/secret}}"

    private static func url(of proxy: RunningProxy, asUser: Bool) -> String {
        asUser ? "http://alice:\(clientSecret)@127.0.0.1:\(proxy.port)" : proxy.url
    }

    @Test(arguments: [false, true])
    func `git clones and pushes through the proxy, large packs too`(asUser: Bool) async throws {
        let folder = try TemporaryDirectory()
        let nobody = [
            "GIT_CONFIG_NOSYSTEM": "1", "HOME": folder.path, "GIT_TERMINAL_PROMPT": "0", "GIT_AUTHOR_NAME": "a",
            "GIT_AUTHOR_EMAIL": "a@example.com", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a@example.com",
        ]
        let git: @Sendable ([String], [String: String?]) async throws -> Void = { arguments, more in
            try await ChildProcess.output(
                of: ["git"] + arguments, environment: Self.none.merging(nobody) { $1 }.merging(more) { $1 },
                directory: folder.path)
        }
        try await git(["init", "-q", "--bare", "served.git"], [:])
        try await git(["-C", "served.git", "config", "http.receivepack", "true"], [:])
        let origin = try Server([try Repository.python(), fixture("git_server.py"), folder.path, token])
        let proxy = try await RunningProxy(
            to: "http://127.0.0.1:\(try await origin.port())", host: "git.test", proxy: asUser ? Self.users : "")
        let proxied: [String: String?] = ["http_proxy": Self.url(of: proxy, asUser: asUser)]
        try await git(["clone", "-q", "http://git.test/served.git", "first"], proxied)
        // Above http.postBuffer (1 MiB), git asks once without a body and then sends the pack in chunks.
        let noise = (0..<(3 << 20)).map { _ in UInt8.random(in: .min ... .max) }
        try folder.write(noise, to: "first/noise")
        try await git(["-C", "first", "add", "noise"], [:])
        try await git(["-C", "first", "commit", "-q", "-m", "noise"], [:])
        try await git(["-C", "first", "push", "-q", "origin", "HEAD:refs/heads/main"], proxied)
        #expect(origin.process.errors.contains("/git-receive-pack HTTP/1.1 chunked"))
        try folder.write("small", to: "first/small")
        try await git(["-C", "first", "add", "small"], [:])
        try await git(["-C", "first", "commit", "-q", "-m", "small"], [:])
        try await git(["-C", "first", "push", "-q", "origin", "HEAD:refs/heads/main"], proxied)
        try await git(["clone", "-q", "--branch", "main", "http://git.test/served.git", "second"], proxied)
        #expect(FileManager.default.contents(atPath: folder.path(of: "second/noise")) == Data(noise))
        #expect(try folder.read("second/small") == "small")
    }

    @Test(arguments: [false, true])
    func `apt updates and downloads, and pip installs, through the proxy`(asUser: Bool) async throws {
        let folder = try TemporaryDirectory()
        try await ChildProcess.output(of: [try Repository.python(), fixture("package_repositories.py"), folder.path])
        let origin = try RecordingOrigin { try $0.serve(folder: folder.path) }
        let proxy = try await RunningProxy(to: origin, host: "packages.test", proxy: asUser ? Self.users : "")
        let proxyURL = Self.url(of: proxy, asUser: asUser)

        for name in ["state/lists/partial", "cache/archives/partial", "parts", "downloads"] {
            try FileManager.default.createDirectory(
                atPath: folder.path(of: name), withIntermediateDirectories: true)
        }
        try folder.write("", to: "status")
        try folder.write("deb [trusted=yes] http://packages.test/debian ./\n", to: "sources.list")
        let options = [
            "Dir::State=\(folder.path)/state", "Dir::State::status=\(folder.path)/status",
            "Dir::Cache=\(folder.path)/cache", "Dir::Etc::SourceList=\(folder.path)/sources.list",
            "Dir::Etc::SourceParts=\(folder.path)/parts", "Acquire::http::Proxy=\(proxyURL)",
            "Acquire::Languages=none", "APT::Sandbox::User=root", "Acquire::Retries=0",
        ].flatMap { ["-o", $0] }
        try await ChildProcess.output(of: ["apt-get", "-q"] + options + ["update"], environment: Self.none)
        // Several at once: apt pipelines them.
        let names = (0..<6).map { "heimdallr-test-\($0)" }
        try await ChildProcess.output(
            of: ["apt-get", "-q"] + options + ["download"] + names, environment: Self.none,
            directory: folder.path(of: "downloads"))
        for name in names {
            let file = "\(name)_1.0_all.deb"
            #expect(
                FileManager.default.contentsEqual(
                    atPath: folder.path(of: "downloads/\(file)"), andPath: folder.path(of: "debian/\(file)")))
        }

        var environment = Self.none
        environment["http_proxy"] = proxyURL
        try await ChildProcess.output(
            of: [
                try Repository.python(), "-m", "pip", "--isolated", "install", "--quiet", "--no-cache-dir",
                "--disable-pip-version-check", "--proxy", proxyURL, "--trusted-host", "packages.test", "--index-url",
                "http://packages.test/simple", "--target", folder.path(of: "installed"), "heimdallr-test",
            ], environment: environment)
        #expect(try folder.read("installed/heimdallr_test.py") == "ANSWER = 42\n")
        #expect(origin.requests.allSatisfy { $0.values("Authorization") == ["Bearer \(token)"] })
        #expect(origin.problems.isEmpty)
    }
}

/// A server of the tests' that prints its port.
private struct Server: Sendable {
    let process: ChildProcess

    init(_ command: [String]) throws { process = try ChildProcess(command) }

    func port() async throws -> UInt16 {
        let process = process
        return try await eventually("the server's port") {
            if process.ending != nil { throw TestFailure(process.transcript) }
            return process.output.hasSuffix("\n") ? UInt16(process.output.dropLast()) : nil
        }
    }
}

func fixture(_ name: String) -> String { "\(Repository.root)/Tests/EndToEndTests/Fixtures/\(name)" }

extension OriginExchange {
    /// Answers with a file of that folder, or 404.
    func serve(folder: String) throws {
        let path = head.target.split(separator: "?").first.map(String.init) ?? "/"
        let name = path.hasSuffix("/") ? path + "index.html" : path
        guard !name.contains(".."), let content = FileManager.default.contents(atPath: folder + name) else {
            return try respond(404)
        }
        let type = name.hasSuffix(".html") ? "text/html" : "application/octet-stream"
        try send("HTTP/1.1 200 Answer\r\nContent-Type: \(type)\r\nContent-Length: \(content.count)\r\n\r\n")
        if head.method != "HEAD" { try send(Array(content)) }
    }
}

extension Substring {
    fileprivate func trimmingSuffix(while predicate: (Character) -> Bool) -> Substring {
        var text = self
        while let last = text.last, predicate(last) { text.removeLast() }
        return text
    }
}
