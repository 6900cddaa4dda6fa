import Foundation
import TestSupport
import Testing

@Suite("helpers: programs that ask heimdallr-proxy token themselves", .timeLimit(.minutes(4)))
struct TokenHelperTests {
    private let endpoint: TokenEndpoint
    private let folder: TemporaryDirectory
    /// Those that the tests started, which run until the test ends.
    private let proxies = Recorder<RunningProxy>()

    init() throws {
        folder = try TemporaryDirectory()
        endpoint = try TokenEndpoint { _, number in
            .token(
                "the-token-\(number + 1)",
                extra: #""AccessKeyId":"AKIA1","SecretAccessKey":"aws-secret","SessionToken":"aws-session""#)
        }
    }

    /// A proxy with an exportable client that no upstream uses, and the command of its helper.
    private func helper(_ format: String, _ more: String..., client: String = "") async throws -> (
        RunningProxy, [String]
    ) {
        let proxy = try await RunningProxy(
            to: "http://127.0.0.1:1", client: "exportable: true\n" + client, admin: "", tokenEndpoint: endpoint,
            more: "audit: {file: FOLDER/audit.jsonl}")
        proxies.append(proxy)
        let socket = try await proxy.administration().socket
        return (proxy, [try Repository.executable(), "token", "api", "--socket", socket, "--format", format] + more)
    }

    /// The file is written by another process: a child of this one could hold it open for writing, and then it can't be
    /// run (ETXTBSY, execve(2)).
    private func script(_ name: String, _ words: [String]) async throws -> String {
        let text = try folder.write("#!/bin/sh\nexec \(words.joined(separator: " ")) \"$@\"\n", to: name + ".text")
        _ = try await ChildProcess.output(of: ["install", "-m", "755", text, folder.path(of: name)])
        return folder.path(of: name)
    }

    private static func basic(_ user: String, _ password: String) -> String {
        "Basic " + Data("\(user):\(password)".utf8).base64EncodedString()
    }

    private func run(_ words: [String], _ environment: [String: String?] = [:], input: String = "") async throws
        -> ChildProcess
    {
        try await ChildProcess.run(
            words,
            environment: InterceptedProgram.clean.merging(["HOME": folder.path]) { $1 }
                .merging(environment) { $1 }, input: Array(input.utf8))
    }

    // MARK: Programs

    @Test(arguments: ["v1", "v1beta1"])
    func `kubectl takes the token of its helper, in the version that it asks for`(version: String) async throws {
        let origin = try await SecureOrigin(packages: false)
        let (_, words) = try await helper("kubectl")
        let config = try folder.write(
            """
            apiVersion: v1
            kind: Config
            current-context: c
            contexts: [{name: c, context: {cluster: c, user: u}}]
            clusters: [{name: c, cluster: {server: "\(origin.url)", certificate-authority: \(origin.certificateFile)}}]
            users:
              - name: u
                user:
                  exec:
                    apiVersion: client.authentication.k8s.io/\(version)
                    command: \(words[0])
                    args: [\(words.dropFirst().joined(separator: ", "))]
                    interactiveMode: Never
            """, to: "kubeconfig")
        let run = try await run([try Repository.python("kubectl"), "get", "--raw", "/version", "--kubeconfig", config])
        #expect(run.output == "answer", "\(run.transcript)")
        #expect(origin.recording.requests.map { $0.values("Authorization") } == [["Bearer the-token-1"]])
    }

    @Test func `git takes the token as a password, and its refusal brings another token`() async throws {
        let origin = try RecordingOrigin { exchange in
            guard exchange.head.fields.value("Authorization") == Self.basic("x-access-token", "the-token-2") else {
                return try exchange.respond(401, fields: [("WWW-Authenticate", "Basic realm=\"git\"")])
            }
            try exchange.respond(body: "\(String(repeating: "1", count: 40))\trefs/heads/main\n")
        }
        let (proxy, words) = try await helper("git", "--user", "x-access-token")
        let command = [
            "git", "-c", "credential.helper=!\(words.joined(separator: " "))", "ls-remote", "\(origin.url)/r.git",
        ]
        let quiet = ["GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_NOSYSTEM": "1"] as [String: String?]
        let first = try await run(command, quiet)
        #expect(first.ending == .exited(128), "\(first.transcript)")
        try await eventually("the erased token is replaced") { proxy.tokenRequests == 2 }
        let second = try await run(command, quiet)
        #expect(second.output.contains("refs/heads/main"), "\(second.transcript)")
        // A token that is not the current one blames nobody.
        for input in ["password=the-token-1\n", "password=other\n", "protocol=https\n"] {
            let erase = try await run(words + ["erase"], input: input)
            #expect(erase.ending == .exited(0) && erase.output.isEmpty && erase.errors.isEmpty, "\(erase.transcript)")
        }
        let store = try await run(words + ["store"], input: "password=the-token-2\n")
        #expect(store.ending == .exited(0) && store.output.isEmpty && store.errors.isEmpty)
        #expect(proxy.tokenRequests == 2)
    }

    @Test func `erasing each new token soon asks the server for no more, as with refusals of an API`() async throws {
        let (proxy, words) = try await helper("git")
        for _ in 0..<6 {
            let answer = try await run(words + ["get"], input: "protocol=https\nhost=git.test\n\n").output
            let password = answer.split(separator: "\n").first { $0.hasPrefix("password=") } ?? ""
            _ = try await run(words + ["erase"], input: "\(password)\n")
        }
        #expect((1...3).contains(proxy.tokenRequests), "\(proxy.tokenRequests)")
    }

    @Test(.enabled(if: FileManager.default.isExecutableFile(atPath: "/usr/bin/skopeo"), "needs skopeo"))
    func `skopeo takes the token from a helper of docker's kind`() async throws {
        let origin = try RecordingOrigin { exchange in
            let isKnown = exchange.head.fields.value("Authorization") != nil
            try exchange.respond(isKnown ? 404 : 401, fields: [("WWW-Authenticate", "Basic realm=\"r\"")])
        }
        let (_, words) = try await helper("docker", "--user", "oauth2accesstoken")
        _ = try await script("docker-credential-heimdallr", words)
        let registry = String(origin.url.dropFirst("http://".count))
        let auth = try folder.write("{\"credHelpers\": {\"\(registry)\": \"heimdallr\"}}", to: "auth.json")
        let path = "\(folder.path):\(ProcessInfo.processInfo.environment["PATH"] ?? "")"
        let run = try await run(
            ["skopeo", "inspect", "--tls-verify=false", "--authfile", auth, "docker://\(registry)/a/b:c"],
            ["PATH": path])
        let given = origin.requests.compactMap { $0.fields.value("Authorization") }
        #expect(given.first == Self.basic("oauth2accesstoken", "the-token-1"), "\(run.transcript)")
    }

    @Test func `botocore takes keys from the helper, and knows their end`() async throws {
        let (_, words) = try await helper("aws")
        let config = try folder.write("[default]\ncredential_process = \(words.joined(separator: " "))\n", to: "aws")
        let program = """
            import botocore.session, datetime
            c = botocore.session.get_session().get_credentials()
            f = c.get_frozen_credentials()
            left = (c._expiry_time - datetime.datetime.now(datetime.timezone.utc)).total_seconds()
            print(f.access_key, f.secret_key, f.token, 3000 < left <= 3600)
            """
        let run = try await run(
            [try Repository.python(), "-c", program], ["AWS_CONFIG_FILE": config, "AWS_EC2_METADATA_DISABLED": "true"])
        #expect(run.output == "AKIA1 aws-secret aws-session True\n", "\(run.transcript)")
    }

    @Test func `google-auth exchanges the token of its executable`() async throws {
        let origin = try RecordingOrigin {
            try $0.respond(
                fields: [("Content-Type", "application/json")],
                body:
                    #"{"access_token": "google-token", "issued_token_type": "urn:ietf:params:oauth:token-type:access_token", "token_type": "Bearer", "expires_in": 3600}"#
            )
        }
        let (_, words) = try await helper("gcloud")
        let file = try folder.write(
            """
            {"type": "external_account", "audience": "//iam.test/p", "token_url": "\(origin.url)/token",
             "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
             "credential_source": {"executable": {"command": "\(words.joined(separator: " "))", "timeout_millis": 30000}}}
            """, to: "google.json")
        let program = """
            import sys, google.auth, google.auth.transport.requests
            c, _ = google.auth.load_credentials_from_file(sys.argv[1], scopes=["s"])
            c.refresh(google.auth.transport.requests.Request()); print(c.token)
            """
        let run = try await run(
            [try Repository.python(), "-c", program, file], ["GOOGLE_EXTERNAL_ACCOUNT_ALLOW_EXECUTABLES": "1"])
        #expect(run.output == "google-token\n", "\(run.transcript)")
        #expect(origin.requests.first?.text.contains("subject_token=the-token-1") == true)
    }

    @Test func `curl and wget take the token from a netrc line and a header line`() async throws {
        let origin = try RecordingOrigin { exchange in
            let isKnown = exchange.head.fields.value("Authorization") != nil
            try exchange.respond(isKnown ? 200 : 401, fields: [("WWW-Authenticate", "Basic realm=\"r\"")])
        }
        let (_, netrc) = try await helper("netrc", "--host", "127.0.0.1", "--user", "me")
        let line = try await run(netrc)
        try folder.write(line.output, to: ".netrc")
        for program in [["curl", "-sS", "--netrc", origin.url], ["wget", "-q", "-O", "-", origin.url]] {
            let run = try await run(program)
            #expect(run.ending == .exited(0), "\(run.transcript)")
        }
        #expect(origin.requests.last?.values("Authorization") == [Self.basic("me", "the-token-1")])
        let (_, header) = try await helper("header")
        let piped = try await run(["sh", "-c", "\(header.joined(separator: " ")) | curl -sS -H @- \(origin.url)"])
        #expect(piped.ending == .exited(0))
        #expect(origin.requests.last?.values("Authorization").first?.hasPrefix("Bearer the-token-") == true)
    }

    // MARK: What every format promises

    private static let formats = ["plain", "json", "header", "kubectl", "git", "docker", "aws", "netrc", "gcloud"]

    @Test func `each format gives the token alone on standard output, and each export is audited`() async throws {
        let (proxy, words) = try await helper("plain", "--host", "a.test")
        let command = words.filter { !["--format", "plain"].contains($0) }
        for format in Self.formats {
            let run = try await run(command + ["--format", format])
            #expect(run.ending == .exited(0) && run.errors.isEmpty, "\(run.transcript)")
            #expect(run.output.contains(format == "aws" ? "aws-session" : "the-token-1"), "\(format): \(run.output)")
            if run.output.hasPrefix("{") { #expect(run.output.split(separator: "\n").count == 1, "\(run.output)") }
        }
        try await eventually("the audit has each") {
            (try? proxy.directory.read("audit.jsonl"))?.split(separator: "\n").count == Self.formats.count
        }
        let audit = try proxy.directory.read("audit.jsonl")
        for format in Self.formats {
            let line = try #require(audit.split(separator: "\n").first { $0.contains("\"format\":\"\(format)\"") })
            #expect(line.contains("\"audit\":\"exported\",\"client\":\"api\"") && line.contains("\"uid\":\(geteuid())"))
            #expect(line.firstMatch(of: /"until":"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ"/) != nil, "\(line)")
            #expect(!line.contains("the-token"))
        }
    }

    @Test func `without a token each format gives nothing but the way to sign in, on standard error`() async throws {
        let lines = "grant_type: authorization_code\nauthorization_endpoint: http://127.0.0.1:1/authorize"
        let (proxy, words) = try await helper("plain", "--host", "a.test", client: lines)
        let command = words.filter { !["--format", "plain"].contains($0) }
        for format in Self.formats {
            let run = try await run(command + ["--format", format])
            #expect(run.ending == .exited(1) && run.output.isEmpty, "\(run.transcript)")
            #expect(run.errors.contains("http://127.0.0.1:") && run.errors.contains("/login/api"), "\(run.errors)")
            #expect(!run.errors.contains("credentials not found"))
        }
        #expect(try await proxy.terminate() == .exited(0))
        let gone = try await run(command)
        #expect(gone.ending == .exited(1) && gone.output.isEmpty && !gone.errors.isEmpty)
    }

    @Test func `a token that names a key or a certificate is not exported`() async throws {
        func part(_ text: String) -> String {
            Data(text.utf8).base64EncodedString().replacing("=", with: "").replacing("+", with: "-").replacing(
                "/", with: "_")
        }
        let jwt = [#"{"alg":"none"}"#, #"{"sub":"a","cnf":{"x5t#S256":"x"}}"#, "s"].map(part).joined(separator: ".")
        let proxy = try await RunningProxy(
            to: "http://127.0.0.1:1", client: "exportable: true", admin: "", tokenEndpoint: TokenEndpoint([.token(jwt)])
        )
        let socket = try await proxy.administration().socket
        let run = try await RunningProxy.run(["token", "api", "--socket", socket])
        #expect(run.ending == .exited(1) && run.output.isEmpty && run.errors.contains("bound"), "\(run.transcript)")
    }

    @Test func `git gets no token for plain http elsewhere, and a helper for one host none for another`() async throws {
        let (_, words) = try await helper("git", "--host", "git.test")
        for (input, isGood) in [
            ("protocol=https\nhost=git.test\n", true), ("protocol=https\nhost=evil.test\n", false),
            ("protocol=http\nhost=git.test\n", false),
        ] {
            let run = try await run(words + ["get"], input: input)
            #expect(run.output.isEmpty != isGood && (run.ending == .exited(0)) == isGood, "\(run.transcript)")
        }
        let user = try await run(words + ["get"], input: "protocol=https\nhost=git.test\nusername=ada\n")
        #expect(user.output.hasPrefix("username=ada\npassword=the-token-1\npassword_expiry_utc="), "\(user.output)")
    }

    @Test(
        arguments: [
            ("netrc", [], "--host"), ("docker", ["--user", "<token>"], "refresh token"),
            ("netrc", ["--host", "a.test", "--user", "a b"], "netrc"),
        ] as [(String, [String], String)])
    func `a format that a program would misread is refused`(format: String, more: [String], reason: String) async throws
    {
        let (_, words) = try await helper(format)
        let run = try await run(words + more)
        #expect(run.ending == .exited(1) && run.output.isEmpty && run.errors.contains(reason), "\(run.transcript)")
    }

    @Test func `keys of AWS need a token endpoint that gives some, and a long token no netrc line`() async throws {
        let long = String(repeating: "t", count: 5000)
        let proxy = try await RunningProxy(
            to: "http://127.0.0.1:1", client: "exportable: true", admin: "",
            tokenEndpoint: TokenEndpoint([.token(long)]))
        let socket = try await proxy.administration().socket
        for (format, reason) in [("aws", "AccessKeyId"), ("netrc", "4095"), ("unknown", "unknown")] {
            let run = try await RunningProxy.run(
                ["token", "api", "--socket", socket, "--format", format, "--host", "a.test"])
            #expect(run.ending != .exited(0) && run.output.isEmpty && run.errors.contains(reason), "\(run.transcript)")
        }
    }
}
