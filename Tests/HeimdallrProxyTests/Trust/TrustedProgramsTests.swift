import Foundation
import TestSupport
import Testing

@testable import HeimdallrProxy

/// Real programs with the files and variables of `TrustFiles`. Programs that are not installed are left out.
@Suite("programs trust our roots and what they trusted before", .timeLimit(.minutes(5)))
struct TrustedProgramsTests {
    /// A program that GETs its last argument and fails when it does not trust the server.
    struct Program: Sendable, CustomTestStringConvertible {
        let name: String
        let command: [String]
        /// Variables without effect on trust, and those of other programs that would let it trust us, too.
        var environment: [String: String?] = [:]
        /// Trusts roots of its own instead of the system's.
        var hasOwnRoots = false
        var testDescription: String { name }

        var isInstalled: Bool {
            let check = try? Process.run(
                URL(fileURLWithPath: "/bin/sh"), arguments: ["-c", "\(condition) >/dev/null 2>&1"])
            check?.waitUntilExit()
            return check?.terminationStatus == 0
        }

        private var condition: String {
            switch name {
            case "HTTP::Tiny": "perl -MIO::Socket::SSL -MHTTP::Tiny -e 1"
            case "LWP": "perl -MLWP::Protocol::https -e 1"
            case "Go": "command -v go"
            case "PHP's curl": "php -r 'exit(function_exists(\"curl_init\") ? 0 : 1);'"
            default: "command -v \(command[0])"
            }
        }
    }

    private static let python = (try? Repository.python()) ?? "python3"

    static let programs = [
        Program(name: "curl", command: ["curl", "-sS", "--fail"]),
        Program(name: "wget", command: ["wget", "-qO-", "--tries=1"]),
        Program(name: "wget2", command: ["wget2", "-qO-", "--tries=1"]),
        Program(name: "git", command: ["git", "ls-remote"]),
        Program(
            name: "urllib",
            command: [python, "-c", "import sys, urllib.request as u; print(u.urlopen(sys.argv[1]).read().decode())"]),
        Program(
            name: "requests", command: [python, "-c", "import sys, requests; print(requests.get(sys.argv[1]).text)"]),
        Program(name: "httpx", command: [python, "-c", "import sys, httpx; print(httpx.get(sys.argv[1]).text)"]),
        Program(
            name: "botocore",
            command: [
                python, "-c",
                """
                import os, sys
                from botocore.awsrequest import AWSRequest
                from botocore.httpsession import URLLib3Session
                session = URLLib3Session(verify=os.environ.get("AWS_CA_BUNDLE", True))
                print(session.send(AWSRequest("GET", sys.argv[1]).prepare()).text)
                """,
            ]),
        Program(name: "pip", command: [python, "-m", "pip", "download", "-q", "--no-deps", "--retries=0", "-d"]),
        Program(
            name: "Node https",
            command: [
                "node", "-e",
                "require('https').get(process.argv[1], (r) => r.pipe(process.stdout)).on('error', (e) => { console.error(e); process.exit(1); })",
            ], hasOwnRoots: true),
        Program(
            name: "Node fetch",
            command: [
                "node", "-e",
                "fetch(process.argv[1]).then((r) => r.text()).then(console.log, (e) => { console.error(e); process.exit(1); })",
            ], hasOwnRoots: true),
        Program(name: "Java", command: ["java", "-XX:TieredStopAtLevel=1", "-cp", "COMPILED", "Get"]),
        Program(name: "Go", command: ["COMPILED/get"]),
        Program(
            name: "apt",
            command: [
                "apt-get", "update", "-o", "Dir::Etc::SourceList=FOLDER/sources.list", "-o", "Dir::Etc::SourceParts=-",
                "-o", "Dir::State=FOLDER", "-o", "Dir::Cache=FOLDER",
            ]),
        Program(
            name: "grpcio",
            command: [
                python, "-c",
                """
                import grpc, sys
                channel = grpc.secure_channel(sys.argv[1].split("/")[2], grpc.ssl_channel_credentials())
                try: channel.unary_unary("/a.B/c")(b"", timeout=10)
                except grpc.RpcError as error: sys.exit(error.details())
                """,
            ]),
        Program(name: "npm", command: ["npm", "ping", "--fetch-retries=0", "--registry"]),
        Program(
            name: "HTTP::Tiny",
            command: [
                "perl", "-MHTTP::Tiny", "-e",
                "my $r = HTTP::Tiny->new(verify_SSL => 1)->get($ARGV[0]); die $r->{content} unless $r->{success}; print $r->{content}",
            ]),
        Program(
            name: "LWP",
            command: [
                "perl", "-MLWP::UserAgent", "-e",
                "my $r = LWP::UserAgent->new->get($ARGV[0]); die $r->status_line unless $r->is_success; print $r->content",
            ], environment: ["SSL_CERT_FILE": nil]),
        Program(
            name: "Ruby",
            command: ["ruby", "-rnet/http", "-e", "print Net::HTTP.get(URI(ARGV[0]))"]),
        Program(
            name: "PHP's streams",
            command: [
                "php", "-r",
                "$t = file_get_contents($argv[1]); if ($t === false) exit(1); echo $t;", "--",
            ]),
        Program(
            name: "PHP's curl",
            command: [
                "php", "-r",
                "$c = curl_init($argv[1]); curl_setopt($c, CURLOPT_RETURNTRANSFER, 1); $t = curl_exec($c); if ($t === false) { echo curl_error($c); exit(1); } echo $t;",
                "--",
            ]),
    ].filter(\.isInstalled)

    private static let server = """
        import http.server, ssl, sys
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_GET(self):
                body = b"0" * 40 + b"\\trefs/heads/trusted\\n"
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.send_header("Connection", "close")
                self.end_headers()
                self.wfile.write(body)
            def log_message(self, *_): pass
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        context.set_alpn_protocols(["http/1.1", "h2"])
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
        print(server.server_port, flush=True)
        server.serve_forever()
        """

    /// Servers with certificates of our root, of the system's, and of an unknown one.
    private struct Servers {
        let ours: TLSServerProcess
        let system: TLSServerProcess
        let unknown: TLSServerProcess

        init() async throws {
            let command = ["python3", "-c", TrustedProgramsTests.server]
            ours = try await TLSServerProcess(command)
            system = try await TLSServerProcess(command)
            unknown = try await TLSServerProcess(command)
        }
    }

    /// No variable of the tests' own environment leads anywhere.
    private static var clean: [String: String?] {
        var clean: [String: String?] = ["SSL_CERT_DIR": nil, "http_proxy": nil, "https_proxy": nil, "no_proxy": "*"]
        for variable in TrustVariable.all { clean[variable.name] = .some(nil) }
        return clean
    }

    private static let sharedServers = Task { try await Servers() }

    /// The programs in Java and Go.
    private static let compiled = Task {
        let directory = try TemporaryDirectory()
        try directory.write(
            """
            public class Get {
                public static void main(String[] words) throws Exception {
                    System.out.write(new java.net.URL(words[0]).openStream().readAllBytes());
                    System.out.flush();
                }
            }
            """, to: "Get.java")
        try directory.write(
            """
            package main
            import ("io"; "net/http"; "os")
            func main() {
                answer, fault := http.Get(os.Args[1])
                if fault != nil { println(fault.Error()); os.Exit(1) }
                io.Copy(os.Stdout, answer.Body)
            }
            """, to: "get.go")
        for (program, command) in [
            ("Java", ["javac", "-d", directory.path, directory.path(of: "Get.java")]),
            ("Go", ["go", "build", "-o", directory.path(of: "get"), directory.path(of: "get.go")]),
        ] where programs.contains(where: { $0.name == program }) {
            try await ChildProcess.output(
                of: command,
                environment: [
                    "HOME": directory.path,
                    "GOCACHE": "\(FileManager.default.temporaryDirectory.path)/heimdallr-trust-go",
                ])
        }
        return directory
    }

    private let directory: TemporaryDirectory
    private let servers: Servers
    private let compiled: TemporaryDirectory

    init() async throws {
        directory = try TemporaryDirectory()
        // For the user `_apt`.
        try FileManager.default.setAttributes([.posixPermissions: 0o711], ofItemAtPath: directory.path)
        servers = try await Self.sharedServers.value
        compiled = try await Self.compiled.value
    }

    private func files() throws -> TrustFiles {
        let files = try TrustFiles(
            roots: Array(String(contentsOfFile: servers.ours.authority.certificateFile, encoding: .utf8).utf8),
            folder: directory.path(of: "trust"), systemBundle: servers.system.authority.certificateFile)
        try files.writeDefaults()
        return files
    }

    private func run(
        _ program: Program, _ server: TLSServerProcess, _ values: [String: String]
    ) async throws -> ChildProcess {
        var environment = Self.clean.merging(["HOME": directory.path]) { $1 }
        environment.merge(values) { $1 }
        environment.merge(program.environment) { $1 }
        var command = program.command.map {
            $0.replacing("FOLDER", with: directory.path).replacing("COMPILED", with: compiled.path)
        }
        let url = "https://localhost:\(server.port)/x"
        switch program.name {
        case "apt":
            for folder in ["lists/partial", "archives/partial"] {
                try FileManager.default.createDirectory(
                    atPath: directory.path(of: folder), withIntermediateDirectories: true)
            }
            try directory.write("deb [trusted=yes] https://localhost:\(server.port)/ ./\n", to: "sources.list")
        case "git": command += ["https://localhost:\(server.port)/x/"]
        case "pip": command += [directory.path, "\(url)/none-1-py3-none-any.whl"]
        // Nothing comes from an earlier run.
        case "npm": command += [url, "--cache", directory.path(of: "npm-\(UInt32.random(in: 0 ... .max))")]
        default: command.append(url)
        }
        return try await ChildProcess.run(command, environment: environment, directory: directory.path)
    }

    /// Whether the program has accepted the server's certificate.
    private func trusts(_ program: Program, _ run: ChildProcess) -> Bool {
        // What it downloads is no package.
        if program.name == "pip" { return run.errors.contains("is invalid") }
        // The server does not speak its protocol.
        if ["git", "apt", "npm", "grpcio"].contains(program.name) {
            return !(run.output + run.errors).lowercased().contains("certificate")
        }
        return run.ending == .exited(0)
    }

    @Test(arguments: programs)
    func `with the variables each program trusts our roots and the system's, and no others`(program: Program)
        async throws
    {
        let values = try files().variables(for: [:])
        let ours = try await run(program, servers.ours, values)
        #expect(trusts(program, ours), "\(ours.transcript)")
        let system = try await run(program, servers.system, values)
        #expect(trusts(program, system) != program.hasOwnRoots, "\(system.transcript)")
        let unknown = try await run(program, servers.unknown, values)
        #expect(!trusts(program, unknown), "\(unknown.transcript)")
        let without = try await run(program, servers.ours, [:])
        #expect(!trusts(program, without), "\(without.transcript)")
    }

    @Test(arguments: programs)
    func `with a value of the parent's each program trusts our roots and that value's, too`(program: Program)
        async throws
    {
        let former = servers.unknown.authority.certificateFile
        let line = "# mine\nca_certificate = \(former)\n"
        let parent = [
            "SSL_CERT_FILE": former, "CURL_CA_BUNDLE": former, "GIT_SSL_CAINFO": former, "NODE_EXTRA_CA_CERTS": former,
            "AWS_CA_BUNDLE": former,
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH": former, "npm_config_cafile": former, "PERL_LWP_SSL_CA_FILE": former,
            "HOME": directory.path,
            "WGETRC": try directory.write(line, to: "former-wgetrc"),
            "WGET2RC": try directory.write(line, to: "former-wget2rc"),
            "APT_CONFIG": try directory.write(
                "Acquire { https {\n CaInfo \"\(former)\";\n} }\n", to: "former-apt.conf"),
        ]
        let values = parent.merging(try files().variables(for: parent)) { $1 }
        let ours = try await run(program, servers.ours, values)
        #expect(trusts(program, ours), "\(ours.transcript)")
        // No former value leads these there.
        guard !["Java", "PHP's curl"].contains(program.name) else { return }
        let unknown = try await run(program, servers.unknown, values)
        #expect(trusts(program, unknown), "\(unknown.transcript)")
        let system = try await run(program, servers.system, values)
        #expect(!trusts(program, system), "\(system.transcript)")
    }
}
