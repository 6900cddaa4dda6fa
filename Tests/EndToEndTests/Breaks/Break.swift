import Foundation
import TestSupport

/// One row of `Fixtures/breaks.txt`: something that is broken, and what is said of it where people look.
struct Break: Sendable, CustomStringConvertible {
    let name: String
    private let lines: [(key: String, value: String)]

    /// Values of a key, in their order.
    subscript(_ key: String) -> [String] { lines.filter { $0.key == key }.map(\.value) }

    func text(_ key: String) -> String { self[key].joined(separator: "\n") }

    var description: String { name }

    static let keys: Set = [
        "client", "upstream", "upstreams", "proxy", "more", "file", "token", "token_url", "url", "under", "needs",
        "run", "ask",
        "times", "answer", "log", "status", "doctor", "doctor_with", "start",
    ]

    static let all: [Break] = {
        let text = (try? String(contentsOfFile: fixture("breaks.txt"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n## ").dropFirst().map { part in
            let lines = part.split(separator: "\n")
            return Break(
                name: String(lines[0]),
                lines: lines.dropFirst().compactMap { line in
                    guard let colon = line.firstRange(of: ": ") else { return nil }
                    return (String(line[..<colon.lowerBound]), String(line[colon.upperBound...]))
                })
        }
    }()

    /// Keys that no row may have.
    var unknownKeys: [String] { lines.map(\.key).filter { !Self.keys.contains($0) } }

    /// Why this machine can't play the break; `nil`: it can.
    var obstacle: String? { self["needs"].contains("root") && geteuid() != 0 ? "needs root" : nil }

    // MARK: The token endpoint

    /// The endpoint's answers, the last one for ever.
    var tokens: [TokenEndpointAnswer] {
        let given = self["token"].map { line -> TokenEndpointAnswer in
            let words = line.split(separator: " ").map { String($0) }
            return switch words[0] {
            case "error": TokenEndpointAnswer.error(words[1], status: words.count > 2 ? Int(words[2]) ?? 400 : 400)
            case "status": TokenEndpointAnswer.status(Int(words[1]) ?? 500)
            case "page": TokenEndpointAnswer.html(Int(words[1]) ?? 403)
            case "json": TokenEndpointAnswer.json(words.dropFirst().joined(separator: " "))
            case "silence": TokenEndpointAnswer.silence
            default: TokenEndpointAnswer.token(words[0])
            }
        }
        return given.isEmpty ? [.token("T1"), .token("T2"), .token("T3")] : given
    }
}

/// Servers that many breaks need, each started once.
struct BreakGround: Sendable {
    let origin: RecordingOrigin
    private let names: [(String, String)]
    private let servers: [Nginx]
    private let http2: TLSServerProcess

    static let shared = Task { try await BreakGround() }

    private init() async throws {
        // Answers with the status that is the path's last part.
        origin = try RecordingOrigin { exchange in
            _ = try exchange.readBody()
            let word = exchange.head.target.split(separator: "/").last ?? ""
            guard word != "slow" else {
                _ = exchange.waitForPeerToLeave()
                return
            }
            let date = word == "late" ? "Tue, 01 Jan 2030 00:00:00 GMT" : nil
            try exchange.respond(Int(word) ?? 200, fields: date.map { [("Date", $0)] } ?? [], body: "x")
        }
        let (authority, stranger) = (try await PrivateCA(), try await PrivateCA())
        let certificates = [
            try await authority.server(), try await authority.server(days: -1),
            try await authority.server(["DNS:other.test"]), try await stranger.server(),
        ]
        var servers: [Nginx] = []
        for certificate in certificates {
            servers.append(try await Nginx(certificate: certificate, locations: "location / { return 200 x; }"))
        }
        self.servers = servers
        http2 = try await TLSServerProcess(["node", fixture("http2_only.js")], ["tls"])
        let (closed, postgres) = (try freePort(), try await PostgresServer.shared())
        func https(_ port: UInt16) -> String { "https://localhost:\(port)" }
        names = [
            ("ORIGIN", origin.url), ("CLOSED", "127.0.0.1:\(closed)"), ("GOOD", https(servers[0].httpsPort)),
            ("EXPIRED", https(servers[1].httpsPort)), ("OTHERNAME", https(servers[2].httpsPort)),
            ("STRANGER", https(servers[3].httpsPort)), ("PLAIN", https(servers[0].httpPort)),
            ("TWO", https(http2.port)), ("TWOCA", http2.authority.certificateFile), ("CA", authority.certificateFile),
            ("DATABASE", "127.0.0.1 port=\(postgres.port)"),
        ]
    }

    /// Returns the text with the servers' addresses in place of `<ORIGIN>` and the like.
    func filled(_ text: String) -> String {
        names.reduce(text) { $0.replacing("<\($1.0)>", with: $1.1) }
    }
}

/// A proxy with something broken, and the texts that it gives.
struct BrokenProxy {
    let example: Break
    let ground: BreakGround
    private let endpoint: TokenEndpoint
    /// A port for the proxy itself.
    private let own: UInt16

    init(_ example: Break) async throws {
        self.example = example
        ground = try await BreakGround.shared.value
        endpoint = try TokenEndpoint(example.tokens)
        own = try freePort()
    }

    private var files: [String: String] {
        Dictionary(
            uniqueKeysWithValues: example["file"].map { line in
                let words = line.split(separator: " ", maxSplits: 1)
                return (String(words[0]), ground.filled(String(words.dropFirst().first ?? "")))
            })
    }

    private func filled(_ key: String) -> String {
        ground.filled(example.text(key)).replacing("<OWN>", with: "\(own)")
            .replacing("<TAKEN>", with: ground.origin.authority)
    }

    private var configuration: ProxyConfiguration {
        let url = example["url"].isEmpty ? ground.origin.url : filled("url")
        return ProxyConfiguration(
            tokenEndpoint: example["token_url"].isEmpty ? endpoint.url : filled("token_url"), client: filled("client"),
            proxy: filled("proxy"), admin: "",
            upstreams: example["upstreams"].isEmpty
                ? ProxyConfiguration.upstream(url: url, filled("upstream")) : filled("upstreams").indented(2),
            more: filled("more"), files: files)
    }

    /// Commands before the proxy's own that put a small file system at `FOLDER/state`.
    private var wrapper: [String] {
        guard let kind = example["under"].first else { return [] }
        let script = """
            mkdir -p state && mount -t tmpfs -o size=64k,mode=700 tmpfs state || exit 9
            \(kind == "full" ? "head -c 100000 /dev/zero >state/filler 2>/dev/null" : "mount -o remount,ro state")
            exec "$@"
            """
        return ["unshare", "--mount", "sh", "-c", script, "sh"]
    }

    func start() async throws -> RunningProxy { try await RunningProxy(configuration, under: wrapper) }

    /// Starts a proxy that does not get far, and returns its end.
    func failedStart() async throws -> ChildProcess {
        let folder = try TemporaryDirectory()
        for (name, text) in configuration.files { try folder.write(text, to: name) }
        let text = example["run"].isEmpty ? configuration.text : filled("run").replacing("\\n", with: "\n")
        let file = try folder.write(text.replacing("FOLDER", with: folder.path), to: "config.yaml")
        return try await RunningProxy.run(["serve", "--config", file])
    }

    // MARK: What is said

    /// Sends the requests of the row. Returns the last answer, or what the row's command prints.
    func answer(of proxy: RunningProxy) async throws -> String {
        var text = ""
        for _ in 0..<(Int(example.text("times")) ?? 1) {
            if let command = example["run"].first {
                let administration = try await proxy.administration()
                let command = ground.filled(command).replacing("<PROXY>", with: proxy.url)
                    .replacing("<SOCKET>", with: administration.socket)
                    .replacing("<ADMIN>", with: administration.address)
                    .replacing("<PROGRAM>", with: try Repository.executable())
                let run = try await ChildProcess.run(["sh", "-c", command])
                text = run.output + run.errors
                continue
            }
            let ask = (example["ask"].first ?? "GET http://api.test/").split(separator: " ").map { String($0) }
            let body = ask.count > 2 ? String(repeating: "b", count: Int(ask[2]) ?? 0) : nil
            let answer = try await proxy.send(ask[0], ask[1], body: body)
            text = "\(answer.status) \(answer.reason)\n\(answer.text)"
        }
        return text
    }

    func status(of proxy: RunningProxy) async throws -> ChildProcess {
        try await RunningProxy.run(["status", "--socket", try await proxy.administration().socket])
    }

    func doctor(of proxy: RunningProxy) async throws -> ChildProcess {
        try await RunningProxy.run(
            ["doctor", "--config", proxy.directory.path(of: "config.yaml")] + example["doctor_with"])
    }
}
