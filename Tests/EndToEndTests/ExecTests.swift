import Foundation
import TestSupport
import Testing

@Suite("exec ends as shells and env do", .timeLimit(.minutes(2)))
struct ExecTests {
    private let directory: TemporaryDirectory
    private let file: String

    init() throws {
        directory = try TemporaryDirectory()
        file = try directory.write("upstreams: [{host: a.test}]", to: "config.yaml")
    }

    private func exec(_ command: String..., environment: [String: String?] = [:]) async throws -> ChildProcess {
        try await RunningProxy.run(["exec", "--config", file, "--"] + command, environment: environment)
    }

    @Test func `a program that is not there is 127, one that can't be run is 126, and both are said`() async throws {
        let plain = try directory.write("no program", to: "plain")
        let interpreter = try directory.write("#!/no/such/interpreter\n", to: "script")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: interpreter)
        for (program, code) in [
            ("no-such-program-anywhere", Int32(127)), ("/no/such/folder/program", 127), (interpreter, 127),
            (plain, 126), (directory.path, 126), ("\(plain)/below", 126),
        ] {
            // A folder in PATH that this user may not enter would make it 126.
            let path: [String: String?] = ["PATH": "/usr/bin:/bin"]
            let run = try await exec(program, environment: path)
            #expect(run.ending == .exited(code), "\(program) \(run.transcript)")
            #expect(run.errors.contains("can't run \(program): "), "\(run.errors)")
            // The same result as that of the usual tool.
            #expect(
                try await ChildProcess.run(["env", program], environment: path).ending == .exited(code), "\(program)")
        }
        #expect(try await exec("sh", "-c", "exit 42").ending == .exited(42))
        #expect(try await exec("sh", "-c", "kill -9 $$").ending == .signalled(9))
    }

    /// gRPC's C core takes grpc_proxy, https_proxy or http_proxy, whichever comes first, and sends CONNECT there.
    @Test func `gRPC of a program goes by the proxy, as by http_proxy`() async throws {
        let server = try RawListener()
        let program = """
            import grpc, sys
            try: grpc.insecure_channel(sys.argv[1]).unary_unary("/a.B/c")(b"", timeout=10)
            except grpc.RpcError: pass
            """
        let none: [String: String?] = [
            "grpc_proxy": nil, "https_proxy": nil, "http_proxy": nil, "no_grpc_proxy": "none.invalid", "no_proxy": nil,
        ]
        async let run = RunningProxy.run(
            [
                "exec", "--config",
                try directory.write(
                    "{proxy: {listen: 127.0.0.1:\(server.port)}, upstreams: [{host: a.test}]}", to: "grpc.yaml"),
                "--", try Repository.python(), "-c", program, "a.test:80",
            ], environment: none)
        let connection = try await server.accept()
        #expect(try await connection.read(until: "\r\n") == "CONNECT a.test:80 HTTP/1.1\r\n")
        connection.close()
        _ = try await run
        // A value of the environment stays.
        for value in ["", "http://other:1"] {
            let printed = try await exec(
                "sh", "-c", "echo \"${grpc_proxy-unset}\"", environment: none.merging(["grpc_proxy": value]) { $1 })
            #expect(printed.output == "\(value)\n")
        }
    }

    @Test func `an error before the program begins keeps its own exit code`() async throws {
        #expect(try await RunningProxy.run(["exec", "--config", file]).ending == .exited(2))
        #expect(try await RunningProxy.run(["exec", "--config", "/nowhere", "--", "true"]).ending == .exited(78))
    }

    @Test func `exec's usage shows where the program stands, and what the exit codes mean`() async throws {
        let help = try await RunningProxy.run(["exec", "--help"])
        #expect(help.ending == .exited(0))
        #expect(help.output.contains("[--user <name>] -- <command>"), "\(help.output)")
        #expect(help.output.contains("127") && help.output.contains("126"))
        let wrong = try await RunningProxy.run(["exec", "--config", file])
        #expect(wrong.errors.contains("-- <command>"), "\(wrong.errors)")
    }
}
