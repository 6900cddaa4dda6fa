import Foundation
import TestSupport
import Testing

@Suite("what surrounds the process", .timeLimit(.minutes(3)))
struct SurroundingsTests {
    // MARK: SSLKEYLOGFILE

    @Test func `no TLS keys are written to SSLKEYLOGFILE, and one warning says so`() async throws {
        let nginx = try await Nginx.secure()
        let directory = try TemporaryDirectory()
        let keys = directory.path(of: "keys.log")
        let proxy = try await RunningProxy(
            to: "https://localhost:\(nginx.httpsPort)", upstream: "intercept: true",
            more: "tls: {ca_file: \(nginx.authority.certificateFile)}",
            environment: ["SSLKEYLOGFILE": keys, "XDG_RUNTIME_DIR": directory.path])
        #expect(try await proxy.get("http://api.test/").status == 200)
        let roots = try await eventually("the trust files") { proxy.trustFolder } + "/roots.pem"
        let inside = try await ChildProcess.run(
            ["curl", "-sS", "--fail", "--cacert", roots, "-x", proxy.url, "https://api.test/"],
            environment: InterceptedProgram.clean)
        #expect(inside.ending == .exited(0), "\(inside.transcript)")
        #expect(!FileManager.default.fileExists(atPath: keys))
        #expect(proxy.log.split(separator: "\n").count { $0.contains("SSLKEYLOGFILE") } == 1, "\(proxy.log)")
        #expect(proxy.log.contains("warning: SSLKEYLOGFILE: "), "\(proxy.log)")
    }

    @Test func `the warning of SSLKEYLOGFILE is an object in a JSON log`() async throws {
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            "proxy: {listen: \"127.0.0.1:0\"}\nlog: {format: json}\nupstreams: [{host: a.test}]", to: "config.yaml")
        let process = try ChildProcess(
            [try Repository.executable(), "serve", "--config", file],
            environment: ["SSLKEYLOGFILE": directory.path(of: "keys.log")])
        try await eventually("it listens") { process.errors.contains("listening") }
        let lines = process.errors.split(separator: "\n").filter { $0.contains("SSLKEYLOGFILE") }
        #expect(lines.count == 1 && lines[0].hasPrefix("{") && lines[0].contains("\"level\":\"warning\""), "\(lines)")
        #expect(try await process.stop() == .exited(0))
    }

    @Test(arguments: [["doctor"], ["check"], ["doctor", "--json"]])
    func `commands that ask servers write no TLS keys to SSLKEYLOGFILE either`(command: [String]) async throws {
        let directory = try TemporaryDirectory()
        let keys = directory.path(of: "keys.log")
        let nginx = try await Nginx.secure()
        let file = try directory.write(
            """
            tls: {ca_file: \(nginx.authority.certificateFile)}
            upstreams: [{host: api.test, url: "https://localhost:\(nginx.httpsPort)"}]
            """, to: "config.yaml")
        let run = try await RunningProxy.run(command + ["--config", file], environment: ["SSLKEYLOGFILE": keys])
        #expect(run.ending == .exited(0), "\(run.transcript)")
        #expect(!FileManager.default.fileExists(atPath: keys))
        #expect(run.errors.contains("warning: SSLKEYLOGFILE: "), "\(run.errors)")
        if command[0] == "doctor" { #expect(run.output.contains("SSLKEYLOGFILE is ignored")) }
    }

    // MARK: SWIFT_BACKTRACE

    /// The Swift runtime would run the program that the variable names, and give it the memory of the proxy.
    @Test(arguments: [SIGSEGV, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGQUIT])
    func `a crash makes no report, whatever SWIFT_BACKTRACE says`(signal: Int32) async throws {
        let directory = try TemporaryDirectory()
        let report = directory.path(of: "report")
        let program = try directory.write("#!/bin/sh\n: > \(report)\n", to: "swift-backtrace")
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: program)
        let file = try directory.write(
            "proxy: {listen: \"127.0.0.1:0\"}\nupstreams: [{host: a.test}]", to: "config.yaml")
        let process = try ChildProcess(
            [try Repository.executable(), "serve", "--config", file],
            environment: ["SWIFT_BACKTRACE": "enable=yes,swift-backtrace=\(program),output-to=stderr"])
        try await eventually("it listens") { process.errors.contains("listening") }
        process.signal(signal)
        #expect(try await process.ended(within: .seconds(20)) == .signalled(signal))
        #expect(!FileManager.default.fileExists(atPath: report))
        #expect(!process.errors.contains("acktrac"), "\(process.errors)")
    }

    // MARK: Preloaded libraries

    @Test func `a preloaded library that sets variables before main moves no argument`() async throws {
        let directory = try TemporaryDirectory()
        let environment = try await Self.preloading(
            """
            #include <stdlib.h>
            static char names[200][8];
            __attribute__((constructor)) static void start(void) {
                for (int i = 0; i < 200; i++) {
                    names[i][0] = 'Z'; names[i][1] = 'A' + i % 26; names[i][2] = 'A' + i / 26;
                    setenv(names[i], "1", 1);
                }
            }
            """, in: directory)
        let version = try await RunningProxy.run(["--version"], environment: environment)
        #expect(version.ending == .exited(0) && version.output.hasPrefix("heimdallr-proxy "), "\(version.transcript)")
        let file = try directory.write("upstreams: [{host: a.test}]", to: "config.yaml")
        let check = try await RunningProxy.run(["check", "--config", file], environment: environment)
        #expect(check.ending == .exited(0) && check.output.contains("a.test"), "\(check.transcript)")
        // Secret commands, too, are started through the executable.
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin,
            upstream:
                "inject: [{header: Authorization, scheme: Bearer}, {header: X-Key, value: {command: [echo, the-key]}}]",
            environment: environment)
        #expect(try await proxy.get("http://api.test/").status == 200)
        #expect(origin.requests.first?.fields.value("X-Key") == "the-key")
    }

    /// A proxy was killed by "double free" at its end: OpenSSL's exit handler freed what a loop's thread was freeing.
    @Test func `no exit handler of a library runs while threads use what it frees`() async throws {
        let directory = try TemporaryDirectory()
        let environment = try await Self.preloading(
            """
            #include <stdlib.h>
            #include <unistd.h>
            static void late(void) { _exit(99); }
            __attribute__((constructor)) static void start(void) { atexit(late); }
            """, in: directory)
        let version = try await RunningProxy.run(["--version"], environment: environment)
        #expect(version.ending == .exited(0) && version.output.hasPrefix("heimdallr-proxy "), "\(version.transcript)")
        let file = try directory.write("upstreams: [{host: a.test}]", to: "config.yaml")
        let check = try await RunningProxy.run(["check", "--config", file], environment: environment)
        #expect(check.ending == .exited(0) && check.output.contains("a.test"), "\(check.transcript)")
        let wrong = try await RunningProxy.run(["nosuch"], environment: environment)
        #expect(wrong.ending == .exited(2), "\(wrong.transcript)")
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin, environment: environment)
        #expect(try await proxy.get("http://api.test/").status == 200)
        #expect(try await proxy.terminate() == .exited(0))
    }

    /// Variables that have the program of `source` preloaded.
    private static func preloading(
        _ source: String, in directory: TemporaryDirectory
    ) async throws -> [String: String?] {
        let file = try directory.write(source, to: "preloaded.c")
        let library = directory.path(of: "preloaded.so")
        try await ChildProcess.output(of: ["cc", "-shared", "-fPIC", "-o", library, file])
        return ["LD_PRELOAD": library]
    }

    // MARK: The journal

    /// Runs it with standard error as the stream that the variable names.
    private static let asJournal = [
        "sh", "-c", #"JOURNAL_STREAM="$(stat -L -c %d:%i /dev/stderr)" exec "$@""#, "sh",
    ]

    @Test func `lines for the journal begin with their priority`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(to: origin, under: Self.asJournal)
        #expect(try await proxy.get("http://api.test/").status == 200)
        try await eventually("its line") { proxy.log.contains(" info request ") }
        let lines = proxy.log.split(separator: "\n")
        #expect(lines.allSatisfy { $0.contains(/^<[3-7]>/) }, "\(proxy.log)")
        #expect(lines.contains { $0.hasPrefix("<6>") && $0.contains(" info request ") }, "\(proxy.log)")
    }

    @Test func `errors of a wrong configuration have the journal's priorities, and no other reader sees any`()
        async throws
    {
        let directory = try TemporaryDirectory()
        let file = try directory.write("upstreams: [{host: a.test, no_such_key: 1}]", to: "config.yaml")
        let command = [try Repository.executable(), "serve", "--config", file]
        let journal = try await ChildProcess.run(Self.asJournal + command)
        #expect(journal.ending == .exited(78))
        #expect(journal.errors.split(separator: "\n").allSatisfy { $0.hasPrefix("<3>") }, "\(journal.errors)")
        let other = try await ChildProcess.run(command, environment: ["JOURNAL_STREAM": "1:2"])
        #expect(other.errors.hasPrefix("error: "), "\(other.errors)")
    }

    // MARK: The file

    @Test func `status and doctor say that the file has changed since it was read`() async throws {
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(to: RecordingOrigin(), admin: "", tokenEndpoint: endpoint)
        let file = proxy.directory.path + "/config.yaml"
        @Sendable func said(_ command: String...) async throws -> String {
            try await RunningProxy.run(command + ["--config", file]).output
        }
        let (sentence, finding) = ("has changed since it was read", "another version of the configuration file")
        #expect(try await !said("status", "--exit-zero").contains(sentence))
        #expect(try await !said("doctor").contains(finding))
        let text = try String(contentsOfFile: file, encoding: .utf8)
        // The same bytes in another file are no change.
        try text.write(toFile: file, atomically: true, encoding: .utf8)
        #expect(try await !said("status", "--exit-zero").contains(sentence))
        try (text + "# more\n").write(toFile: file, atomically: true, encoding: .utf8)
        try await eventually("status says so") { try await said("status", "--exit-zero").contains(sentence) }
        #expect(try await said("status", "--exit-zero", "--json").contains("\"changed_since_read\": true"))
        let doctor = try await RunningProxy.run(["doctor", "--config", file])
        #expect(doctor.output.contains(finding), "\(doctor.transcript)")
        #expect(try await RunningProxy.run(["reload", "--config", file]).ending == .exited(0))
        try await eventually("no longer") { try await !said("status", "--exit-zero").contains(sentence) }
        #expect(try await !said("doctor").contains(finding))
        // A reload does not end the comparison.
        try (text + "# still more\n").write(toFile: file, atomically: true, encoding: .utf8)
        try await eventually("status says so again") { try await said("status", "--exit-zero").contains(sentence) }
    }
}
