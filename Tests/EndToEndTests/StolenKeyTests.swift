import Foundation
import TestSupport
import Testing

/// A thief with all of a running proxy's memory, files and log.
@Suite(
    "what a thief of the proxy's keys can do", .timeLimit(.minutes(5)),
    .enabled(if: geteuid() == 0, "only root may look into the proxy, which forbids dumps"))
struct StolenKeyTests {
    private let directory: TemporaryDirectory
    private let origin: RecordingOrigin
    private var proxy: RunningProxy
    private let environment: [String: String?]

    init() async throws {
        directory = try TemporaryDirectory()
        origin = try RecordingOrigin()
        environment = InterceptedProgram.clean.merging(["XDG_RUNTIME_DIR": directory.path]) { $1 }
        proxy = try await RunningProxy(
            to: origin, proxy: "listen: 127.0.0.1:\(try freePort())", upstream: "intercept: true",
            environment: environment)
    }

    private func exec(_ command: [String], _ more: [String: String?] = [:]) async throws -> ChildProcess {
        try await ChildProcess.run(
            [try Repository.executable(), "exec", "--config", proxy.directory.path(of: "config.yaml"), "--"] + command,
            environment: environment.merging(more) { $1 }, within: .seconds(150))
    }

    private func trustFolder() async throws -> String {
        try await eventually("the trust files") { proxy.trustFolder }
    }

    private struct Loot {
        let found: [String: Int]
        /// PEM.
        let certificate: String
        /// File of the private scalar in hex.
        let key: String
    }

    /// Searches the memory for the private keys of the root and of a certificate for the host.
    /// - Parameter position: position of the certificate in the chain, from 1.
    private func steal(_ host: String = "api.test", _ position: Int = 1) async throws -> Loot {
        // The certificate is in use.
        #expect(try await exec(["curl", "-sS", "https://\(host)/"]).output == "ok")
        let shown = try await ChildProcess.output(of: [
            "sh", "-c",
            """
            openssl s_client -proxy 127.0.0.1:\(proxy.port) -connect \(host):443 -servername \(host) -showcerts \\
                </dev/null 2>&1 | awk '/BEGIN CERTIFICATE/ { n++ } n == \(position)' | openssl x509
            """,
        ])
        let root = try String(contentsOfFile: "\(try await trustFolder())/roots.pem", encoding: .utf8)
        let key = directory.path(of: "key")
        let lines = try directory.write(
            """
            process \(proxy.process.pid)
            keys \(key)
            leaf \(Self.base64(shown))
            root \(Self.base64(root))
            done

            """, to: "certificates")
        let output = try await ChildProcess.output(
            of: ["python3", Repository.fixture("private_scalars.py"), "sh", "-c", "cat \(lines) -"],
            within: .seconds(200))
        return Loot(
            found: try JSONDecoder().decode([String: Int].self, from: Data(output.utf8)),
            certificate: try directory.write(shown, to: "leaf.pem"), key: key)
    }

    private static func base64(_ pem: String) -> String {
        pem.split(separator: "\n").filter { !$0.hasPrefix("-----") }.joined()
    }

    /// `localhost` is for the programs of `exec` a host without the proxy.
    @Test func `no key that can sign is in the proxy's memory, and programs of exec refuse what another opens`()
        async throws
    {
        let loot = try await steal()
        let found = loot.found
        // The search finds keys that are there.
        #expect(found["key of a leaf", default: 0] > 0, "\(found)")
        #expect(found["key of a root"] == 0, "\(found)")
        #expect(found["nonce under a root"] == 0, "\(found)")
        let folder = try await trustFolder()
        let files = try FileManager.default.subpathsOfDirectory(atPath: folder)
        #expect(files.contains("truststore.jks"))
        for file in files {
            let content = FileManager.default.contents(atPath: "\(folder)/\(file)") ?? Data()
            #expect(content.range(of: Data("PRIVATE KEY".utf8)) == nil, "\(file)")
        }
        #expect(!proxy.log.contains("PRIVATE KEY"))
        try await expectRefusals("child", loot, Self.programs)
        for way in ["root", "own"] { try await expectRefusals(way, loot, Self.libraries) }
    }

    /// The older Node asks the proxy for every host.
    private static let programs = InterceptedProgram.all.filter { $0.name != "an older Node" }
    /// One for each library that checks certificates: OpenSSL, GnuTLS, those of Go, Java and Node, and NSS.
    private static let libraries = programs.filter {
        ["curl", "wget", "apt", "Go net/http", "Java HttpClient", "Node fetch", "Chromium"].contains($0.name)
    }

    /// Each program sends a request to a server with a certificate that the thief made.
    private func expectRefusals(
        _ way: String, _ loot: Loot, _ programs: [InterceptedProgram]
    ) async throws {
        let server = try ChildProcess([
            try Repository.python(), Repository.fixture("forged_server.py"), way, loot.certificate, loot.key,
        ])
        let port = try await server.printedPort()
        for program in programs {
            let run = try await exec(try program.command("https://localhost:\(port)\(program.target)", directory))
            #expect(run.ending != .exited(0), "\(way) \(run.transcript)")
        }
        #expect(server.output == "\(port)\n", "a request of a program that trusts it: \(way)")
    }

    /// Java, too, heeds the constraints of an intermediate.
    @Test func `a wildcard's intermediate key is in memory, and opens no host outside of its domain`()
        async throws
    {
        let endpoint = try TokenEndpoint.plain()
        var wild = self
        wild.proxy = try await RunningProxy(
            ProxyConfiguration(
                listen: try freePort(), clients: [ProxyConfiguration.client(tokenEndpoint: endpoint.url)],
                upstreams: [ProxyConfiguration.upstream("\"*.wild.test\"", url: origin.url, "intercept: true")]),
            environment: environment)
        let loot = try await wild.steal("a.wild.test", 2)
        #expect(loot.found["key of a leaf", default: 0] > 0, "\(loot.found)")
        for what in ["key of a root", "nonce under a root", "nonce under a leaf"] {
            #expect(loot.found[what] == 0, "\(loot.found)")
        }
        try await wild.expectRefusals("child", loot, Self.libraries)
        #expect(!wild.proxy.log.contains("PRIVATE KEY"))
        withExtendedLifetime(endpoint) {}
    }

    /// The same programs ask such a server if its certificate is of an authority that their environment names.
    @Test func `the programs accept another authority where a variable names it`() async throws {
        let server = try await SecureOrigin(packages: true)
        let file = server.certificateFile
        let apt = try directory.write("Acquire::https::CaInfo \"\(file)\";\n", to: "apt.conf")
        let named: [String: String?] = [
            "SSL_CERT_FILE": file, "GIT_SSL_CAINFO": file, "NODE_EXTRA_CA_CERTS": file, "PERL_LWP_SSL_CA_FILE": file,
            "REQUESTS_CA_BUNDLE": file, "WGETRC": try directory.write("ca_certificate = \(file)\n", to: "wgetrc"),
            "APT_CONFIG": apt,
        ]
        // No variable leads the others there.
        for program in Self.programs where !program.name.hasPrefix("Java") && program.name != "PHP curl" {
            let run = try await exec(try program.command("\(server.url)\(program.target)", directory), named)
            #expect(run.ending == .exited(0), "\(run.transcript)")
        }
    }
}
