import Foundation
import TestSupport
import Testing

@Suite(
    "doctor names the cause that several faults share, or that only the running proxy knows", .timeLimit(.minutes(3)))
struct DoctorCauseTests {
    private static let obstacle: String? = geteuid() == 0 ? nil : "mounting needs root"

    private static func run(_ folder: TemporaryDirectory, _ text: String, _ command: String = "doctor") async throws
        -> ChildProcess
    {
        let file = try folder.write(text, to: "config.yaml")
        return try await RunningProxy.run(
            [command, "--config", file], environment: ["http_proxy": nil, "https_proxy": nil, "no_proxy": nil])
    }

    @Test func `doctor tells of an upstream that accepts and says nothing, and of the others`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let silent = try RecordingOrigin { _ in gate.wait() }
        let other = try RecordingOrigin()
        let run = try await Self.run(
            TemporaryDirectory(),
            """
            upstreams:
              - {host: silent.test, url: "\(silent.url)", allow_plaintext: true, response_timeout: 1s}
              - {host: other.test, url: "\(other.url)", allow_plaintext: true}
            """)
        #expect(run.ending == .exited(1), "\(run.transcript)")
        #expect(run.output.contains("no answer to the request within"), "\(run.transcript)")
        #expect(run.output.contains("answers 200 to HEAD /"))
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `a full disk is told by doctor and by check, for the store and for the audit file`() async throws {
        let folder = try TemporaryDirectory()
        let store = folder.path(of: "store")
        try FileManager.default.createDirectory(atPath: store, withIntermediateDirectories: false)
        let key = try folder.write(Data(repeating: 7, count: 32).base64EncodedString(), to: "key")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: key)
        let file = try folder.write(
            """
            store: {kind: file, directory: \(store), key: {file: \(key)}}
            audit: {file: \(store)/audit.jsonl}
            upstreams: [{host: api.test, url: "http://127.0.0.1:1", allow_plaintext: true}]
            """, to: "config.yaml")
        let full = [
            "unshare", "--mount", "sh", "-c",
            """
            mount -t tmpfs -o size=64k,mode=700 tmpfs "$0" || exit 9
            head -c 100000 /dev/zero >"$0/filler" 2>/dev/null
            exec "$@"
            """, store, try Repository.executable(),
        ]
        let doctor = try await ChildProcess.run(full + ["doctor", "--config", file])
        #expect(doctor.ending == .exited(1), "\(doctor.transcript)")
        #expect(doctor.output.contains("FAIL  store        the token store: the disk of \(store) is full"))
        #expect(
            doctor.output.contains("FAIL  disk         the disk of \(store) is full, and the audit file needs room"))
        #expect(doctor.output.contains("what to do: free space there"), "\(doctor.output)")
        let check = try await ChildProcess.run(full + ["check", "--config", file])
        #expect(check.errors.contains("the disk of \(store) is full"), "\(check.transcript)")
    }

    @Test func `where one unknown authority has signed several certificates, the remedy names the top-level ca_file`()
        async throws
    {
        let authority = try await PrivateCA()
        let servers = [
            try await Nginx(certificate: try await authority.server()),
            try await Nginx(certificate: try await authority.server()),
        ]
        let ports = servers.map { "https://localhost:\($0.httpsPort)" }
        func text(_ tls: String) -> String {
            """
            \(tls)
            clients: {c: {client_id: id, token_endpoint: "\(ports[0])/token"}}
            upstreams: [{host: a.test, client: c, url: "\(ports[0])"}, {host: b.test, url: "\(ports[1])"}]
            """
        }
        let folder = try TemporaryDirectory()
        let run = try await Self.run(folder, text(""))
        let advice = "or for several servers in the top-level tls.ca_file"
        #expect(run.output.components(separatedBy: advice).count == 4, "\(run.transcript)")
        let cured = try await Self.run(folder, text("tls: {ca_file: \(authority.certificateFile)}"))
        #expect(!cured.output.contains("FAIL  TLS"), "\(cured.transcript)")
    }

    @Test func `a refused scope is told with the scopes that the server lists, by status and by doctor`() async throws {
        let server = try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let own = "http://\(request.field("Host") ?? "")"
            let json = [("Content-Type", "application/json")]
            guard request.method == "POST" else {
                return try exchange.respond(
                    fields: json,
                    body: """
                        {"issuer": "\(own)", "token_endpoint": "\(own)/token", "scopes_supported": ["read", "write"]}
                        """)
            }
            try exchange.respond(400, fields: json, body: #"{"error":"invalid_scope"}"#)
        }
        let proxy = try await RunningProxy(
            """
            proxy: {listen: "127.0.0.1:0"}
            admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
            clients: {c: {issuer: "\(server.url)", client_id: id, scope: [reed], allow_plaintext: true}}
            upstreams: [{host: api.test, url: "\(server.url)", client: c, allow_plaintext: true}]
            """)
        let words = "the server's metadata lists: read, write"
        let socket = try await proxy.administration().socket
        try await eventually("status lists the scopes") {
            try await RunningProxy.run(["status", "--exit-zero", "--socket", socket]).output.contains(words)
        }
        let doctor = try await RunningProxy.run(["doctor", "--config", proxy.directory.path(of: "config.yaml")])
        #expect(doctor.output.contains(words), "\(doctor.transcript)")
    }

    @Test func `an API that asks for a token only at a path is asked where the running proxy was`() async throws {
        let api = try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let own = "http://\(request.field("Host") ?? "")"
            switch request.target {
            case "/doc":
                try exchange.respond(
                    fields: [("Content-Type", "application/json")],
                    body: #"{"resource":"\#(own)/mcp","authorization_servers":["https://a.invalid"]}"#)
            case "/mcp":
                try exchange.respond(
                    401, fields: [("WWW-Authenticate", "Bearer resource_metadata=\"\(own)/doc\"")], body: "")
            default: try exchange.respond(404)
            }
        }
        let proxy = try await RunningProxy.auto(api.url)
        let file = proxy.directory.path(of: "config.yaml")
        let early = try await RunningProxy.run(["doctor", "mcp.test", "--config", file])
        #expect(early.output.contains("without a Bearer challenge"), "\(early.transcript)")
        #expect(try await proxy.get("http://mcp.test/mcp").status == 503)
        let doctor = try await RunningProxy.run(["doctor", "mcp.test", "--config", file])
        #expect(doctor.output.contains("the API asks for a token, and names its metadata"), "\(doctor.transcript)")
        #expect(doctor.output.contains("a.invalid"), "\(doctor.output)")
    }
}
