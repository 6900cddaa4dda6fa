import Foundation
import TestSupport
import Testing

@Suite("what an open connection was granted is looked at again", .timeLimit(.minutes(3)))
struct GrantTests {
    private let authority: PrivateCA
    private let otherAuthority: PrivateCA
    private let origin: RecordingOrigin
    private let endpoint: TokenEndpoint
    private let folder: TemporaryDirectory

    init() async throws {
        authority = try await PrivateCA()
        otherAuthority = try await PrivateCA(commonName: "another")
        origin = try RecordingOrigin { exchange in
            if exchange.head.target == "/held" { _ = exchange.waitForPeerToLeave() }
            try exchange.respond(body: "ok")
        }
        endpoint = try TokenEndpoint.plain()
        folder = try TemporaryDirectory()
    }

    // MARK: Proxies

    private func proxy(_ settings: String, upstreams: String..., listeners: Int = 1) async throws -> RunningProxy {
        try await RunningProxy(
            text(settings, upstreams), files: ["secret": ProxyConfiguration.secret],
            environment: ["XDG_RUNTIME_DIR": folder.path], listeners: listeners, tokenEndpoint: endpoint)
    }

    private func text(_ settings: String, _ upstreams: [String]) -> String {
        ProxyConfiguration(
            proxy: settings, clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)],
            upstreams: upstreams.isEmpty ? [upstream("api.test")] : upstreams
        ).text
    }

    private func upstream(_ host: String, _ lines: String = "") -> String {
        ProxyConfiguration.upstream(host, url: origin.url, lines)
    }

    private func reload(_ proxy: RunningProxy, _ settings: String, upstreams: String...) async throws {
        let count = proxy.log.matches(of: /the configuration was read again and is in use/).count
        try proxy.directory.write(
            text(settings, upstreams).replacing("FOLDER", with: proxy.directory.path), to: "config.yaml")
        proxy.process.signal(SIGHUP)
        try await eventually("the reload") {
            proxy.log.matches(of: /the configuration was read again and is in use/).count > count
        }
    }

    private func listener(_ pair: PrivateCA.Certificate, clients: String?) -> String {
        listener(pair.certificateFile, pair.keyFile, clients: clients)
    }

    private func listener(_ certificate: String, _ key: String, clients: String?) -> String {
        let clientCA = clients.map { ", client_ca_file: \($0)" } ?? ""
        return "listen: {address: 127.0.0.1:0, tls: {cert_file: \(certificate), key_file: \(key)\(clientCA)}}"
    }

    // MARK: Programs

    /// Starts grants.py, which asks once and prints the status.
    private func program(
        _ version: Int, at address: String, urls: [[String]] = [["http", "api.test", "/"]], _ more: [String: Any] = [:]
    ) throws -> ChildProcess {
        var plan: [String: Any] = [
            "version": version, "address": address, "urls": urls, "go": folder.path(of: "go"),
        ]
        plan.merge(more) { $1 }
        let json = String(decoding: try JSONSerialization.data(withJSONObject: plan), as: UTF8.self)
        return try ChildProcess([try Repository.python(), fixture("grants.py"), json])
    }

    private func identity(_ pair: PrivateCA.Certificate) -> [String: Any] {
        ["tls": authority.certificateFile, "identity": [pair.certificateFile, pair.keyFile]]
    }

    /// Lets the program go on, and returns the lines that it prints after the first.
    private func outcome(of program: ChildProcess) async throws -> [String] {
        try folder.write("", to: "go")
        #expect(try await program.ended(within: .seconds(60)) == .exited(0), "\(program.transcript)")
        return program.output.split(separator: "\n").dropFirst().map(String.init)
    }

    private func isAnswered(_ program: ChildProcess) async throws {
        try await eventually("the first answer", within: .seconds(30)) {
            program.output == "200\n" || program.ending != nil
        }
        #expect(program.output == "200\n", "\(program.transcript)")
    }

    // MARK: The listener's TLS

    enum Change: CaseIterable { case authorities, certificate, noVerification, noTLS, listener }

    @Test(arguments: [1, 2], Change.allCases)
    func `after a reload of the listener, no further request is served`(version: Int, change: Change) async throws {
        let pair = try await authority.server()
        let clients = authority.certificateFile
        let proxy = try await proxy(listener(pair, clients: clients))
        let program = try program(
            version, at: "127.0.0.1:\(proxy.port)", identity(try await authority.client("worker")))
        defer { program.kill() }
        try await isAnswered(program)
        let next =
            switch change {
            case .authorities: listener(pair, clients: otherAuthority.certificateFile)
            case .certificate: listener(try await authority.server(), clients: clients)
            case .noVerification: listener(pair, clients: nil)
            case .noTLS: "listen: 127.0.0.1:0"
            case .listener: "listen: 127.0.0.1:\(try freePort())"
            }
        try await reload(proxy, next)
        let last = try await outcome(of: program)
        // The connections of a closed listener may have ended already.
        let early = change == .listener ? ["closed", "goaway closed"] : []
        let expected = [version == 1 ? "503 close" : "refused goaway closed"] + early
        #expect(last.count == 1 && expected.contains(last[0]), "\(last)")
        #expect(origin.requests.count == 1)
    }

    @Test(arguments: [1, 2])
    func `authorities that change in their file end the connections of their clients, a renewed certificate does not`(
        version: Int
    ) async throws {
        func put(_ file: String, as name: String) throws {
            let next = try folder.write(try String(contentsOfFile: file, encoding: .utf8), to: "next")
            try #require(unsafe rename(next, folder.path(of: name)) == 0)
        }
        func renew() async throws {
            let pair = try await authority.server()
            try put(pair.certificateFile, as: "cert.pem")
            try put(pair.keyFile, as: "key.pem")
        }
        try await renew()
        try put(authority.certificateFile, as: "clients.pem")
        let proxy = try await proxy(
            listener(
                folder.path(of: "cert.pem"), folder.path(of: "key.pem"), clients: folder.path(of: "clients.pem")))
        let worker = try await authority.client("worker")
        func begin() async throws -> ChildProcess {
            try? FileManager.default.removeItem(atPath: folder.path(of: "go"))
            let program = try program(
                version, at: "127.0.0.1:\(proxy.port)", identity(worker).merging(["ends": false]) { $1 })
            try await isAnswered(program)
            return program
        }
        func isRead(_ times: Int) async throws {
            try await eventually("the files are read again") {
                proxy.log.matches(of: /new connections use them/).count >= times
            }
        }
        let first = try await begin()
        defer { first.kill() }
        try await renew()
        try await isRead(1)
        #expect(try await outcome(of: first) == ["200"])
        let second = try await begin()
        defer { second.kill() }
        let before = proxy.log.matches(of: /new connections use them/).count
        try put(otherAuthority.certificateFile, as: "clients.pem")
        try await isRead(before + 1)
        let last = try await outcome(of: second)
        #expect(last == [version == 1 ? "503 close" : "refused goaway"] || last == ["refused"], "\(last)")
        #expect(origin.requests.count == 3)
    }

    // MARK: Users

    @Test(arguments: [1, 2], [false, true])
    func `a user whose password a reload changed is refused, also inside an earlier CONNECT`(
        version: Int, inside: Bool
    ) async throws {
        let proxy = try await proxy("users: {alice: sesame}")
        let connect: [String: Any] = inside ? ["connect": "api.test:80"] : [:]
        let program = try program(
            version, at: "127.0.0.1:\(proxy.port)", connect.merging(["password": "alice:sesame", "ends": false]) { $1 })
        defer { program.kill() }
        try await isAnswered(program)
        try await reload(proxy, "users: {alice: another}")
        #expect(try await outcome(of: program) == ["407"])
        #expect(origin.requests.count == 1)
    }

    // MARK: CONNECT, and the listener's role

    @Test(arguments: [false, true])
    func `HTTP 2 inside CONNECT ends with the interception, and with another certificate of the host`(
        ends: Bool
    ) async throws {
        let own = try await authority.server(["DNS:api.test"])
        let intercepted = upstream("api.test", "intercept: true")
        let proxy = try await proxy("", upstreams: intercepted)
        let roots = try await eventually("the files of trust") { proxy.trustFolder } + "/roots.pem"
        let program = try program(
            2, at: "127.0.0.1:\(proxy.port)", urls: [["https", "api.test", "/"]],
            ["connect": "api.test:443", "inside": roots])
        defer { program.kill() }
        try await isAnswered(program)
        let next =
            ends
            ? "intercept: false"
            : "intercept: true\ntls: {server_cert_file: \(own.certificateFile), server_key_file: \(own.keyFile)}"
        try await reload(proxy, "", upstreams: upstream("api.test", next))
        let last = try await outcome(of: program)
        #expect(last == ["refused goaway closed"], "\(last)")
        #expect(origin.requests.count == 1)
    }

    @Test(arguments: [1, 2])
    func `requests inside CONNECT are not served where the listener became one upstream's own`(
        version: Int
    ) async throws {
        let port = try freePort()
        let listen = "listen: [127.0.0.1:\(try freePort()), 127.0.0.1:\(port)]"
        let proxy = try await proxy(listen, upstreams: upstream("api.test"), upstream("two.test"), listeners: 2)
        let program = try program(version, at: "127.0.0.1:\(port)", ["connect": "api.test:80"])
        defer { program.kill() }
        try await isAnswered(program)
        try await reload(
            proxy, "listen: 127.0.0.1:\(proxy.port)", upstreams: upstream("api.test"),
            upstream("two.test", "listen: 127.0.0.1:\(port)\nhosts: [api.test]"))
        let last = try await outcome(of: program)
        #expect(last.count == 1 && !last[0].contains("200"), "\(last)")
        #expect(origin.requests.count == 1)
    }

    @Test(arguments: [1, 2])
    func `a base URL that became a listener of the proxy is one for the rules of callers`(version: Int) async throws {
        let (port, other) = (try freePort(), try freePort())
        let proxy = try await proxy(
            "listen: 127.0.0.1:\(other)", upstreams: upstream("api.test", "listen: 127.0.0.1:\(port)"), listeners: 2)
        let program = try program(
            version, at: "127.0.0.1:\(port)", urls: [["http", "127.0.0.1:\(port)", "/"], ["http", "api.test", "/"]],
            ["ends": false])
        defer { program.kill() }
        try await isAnswered(program)
        try await reload(
            proxy, "listen: [127.0.0.1:\(other), 127.0.0.1:\(port)]",
            upstreams: upstream("api.test", "callers: {listeners: [127.0.0.1:\(other)]}"))
        #expect(try await outcome(of: program) == ["403"])
        #expect(origin.requests.count == 1)
    }

    // MARK: The end of a client's certificate

    /// Time from the making of a certificate to its end. A program starts and asks in it.
    private static let life = 10

    private func verifyingProxy(_ more: String = "") async throws -> RunningProxy {
        try await proxy(listener(try await authority.server(), clients: authority.certificateFile) + "\n\(more)")
    }

    @Test(arguments: ["1.2", "1.3"])
    func `a connection ends with the client's certificate, and so does what it could resume`(
        version: String
    ) async throws {
        let proxy = try await verifyingProxy()
        let worker = identity(try await authority.client("worker", seconds: Self.life))
        let program = try program(
            1, at: "127.0.0.1:\(proxy.port)",
            worker.merging(["tls_version": version, "waits": true, "resume": true]) { $1 })
        defer { program.kill() }
        try await isAnswered(program)
        let last = try await outcome(of: program)
        #expect(last == ["closed", "no TLS"] || last == ["closed", "new closed"], "\(last)")
        #expect(origin.requests.count == 1)
    }

    @Test func `a connection of HTTP 2 ends with the client's certificate`() async throws {
        let proxy = try await verifyingProxy()
        let worker = identity(try await authority.client("worker", seconds: Self.life))
        let program = try program(2, at: "127.0.0.1:\(proxy.port)", worker.merging(["waits": true]) { $1 })
        defer { program.kill() }
        try await isAnswered(program)
        #expect(try await outcome(of: program) == ["goaway closed"])
    }

    @Test(arguments: [1, 2])
    func `a request under way is cut when the client's certificate ends`(version: Int) async throws {
        let proxy = try await verifyingProxy()
        let worker = identity(try await authority.client("worker", seconds: Self.life))
        let program = try program(
            version, at: "127.0.0.1:\(proxy.port)", urls: [["http", "api.test", "/held"]],
            worker.merging(["waits": true, "held": true]) { $1 })
        defer { program.kill() }
        let last = try await outcome(of: program)
        #expect(last == [version == 1 ? "closed" : "reset goaway closed"], "\(last)")
        try await eventually("the origin got the request") { origin.requests.count == 1 }
    }

    @Test func `a tunnel ends with the client's certificate`() async throws {
        let far = try RawListener()
        let proxy = try await verifyingProxy("connect: tunnel\ntunnels: ['127.0.0.1:\(far.port)']")
        let worker = identity(try await authority.client("worker", seconds: Self.life))
        let program = try program(
            1, at: "127.0.0.1:\(proxy.port)",
            worker.merging(["connect": "127.0.0.1:\(far.port)", "tunnel": true]) { $1 })
        defer { program.kill() }
        let end = try await far.accept()
        #expect(try await end.read(count: 5) == Array("hello".utf8))
        try await end.send("world")
        let last = try await outcome(of: program)
        #expect(program.output.hasPrefix("world\n") && last == ["closed"], "\(program.transcript)")
    }
}
