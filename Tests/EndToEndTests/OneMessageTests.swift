import Foundation
import TestSupport
import Testing

@Suite("one failure is one message, with a remedy that works", .timeLimit(.minutes(3)))
struct OneMessageTests {
    private static let obstacle: String? = geteuid() == 0 ? nil : "namespaces need root"

    /// Makes the folders for trust files read-only, and mounts a folder on /mnt.
    private static let readOnly = [
        "unshare", "--mount", "sh", "-c",
        """
        mount -t tmpfs -o mode=700 tmpfs /mnt || exit 9
        for folder in /run /tmp; do
          mount --bind $folder $folder && mount -o remount,bind,ro $folder || exit 9
        done
        exec "$@"
        """, "sh",
    ]

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `trust files that can't be written are told in one message`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let endpoint = try TokenEndpoint.plain()
        let folder = try TemporaryDirectory()
        let configuration = ProxyConfiguration(
            listen: try freePort(), tokenEndpoint: endpoint.url, proxy: "intercept: true",
            upstreams: ProxyConfiguration.upstream(url: origin.url))
        for (name, text) in configuration.files { try folder.write(text, to: name) }
        let file = try folder.write(configuration.text.replacing("FOLDER", with: folder.path), to: "c.yaml")
        var environment: [String: String?] = [
            "XDG_RUNTIME_DIR": nil, "http_proxy": nil, "https_proxy": nil, "no_proxy": nil, "NO_PROXY": nil,
            "SSL_CERT_FILE": nil, "CURL_CA_BUNDLE": nil,
        ]
        let program = [
            try Repository.executable(), "exec", "--serve", "--config", file, "--", "curl", "-sS", "https://api.test/",
        ]
        let failed = try await ChildProcess.run(Self.readOnly + program, environment: environment)
        #expect(failed.ending == .exited(1), "\(failed.transcript)")
        let errors = failed.errors.split(separator: "\n").filter { $0.contains("error") }
        #expect(errors.count == 1 && errors[0].contains("XDG_RUNTIME_DIR"), "\(failed.transcript)")
        #expect(!failed.errors.contains("ExitCode"))
        environment["XDG_RUNTIME_DIR"] = "/mnt"
        let mended = try await ChildProcess.run(Self.readOnly + program, environment: environment)
        #expect(mended.output == "ok", "\(mended.transcript)")
        // A proxy that serves says it once, too, and goes on.
        environment["XDG_RUNTIME_DIR"] = String?.none
        let serving = try ChildProcess(
            Self.readOnly + [try Repository.executable(), "--config", file], environment: environment)
        try await eventually("it listens") { serving.errors.contains(" listening ") }
        let lines = serving.errors.split(separator: "\n").filter { $0.contains(" error ") }
        #expect(lines.count == 1 && lines[0].contains("what_to_do=\"set XDG_RUNTIME_DIR"), "\(serving.transcript)")
        try await serving.stop()
    }

    // MARK: Listeners

    @Test(arguments: [["0.0.0.0", "[::]"], ["[::]", "0.0.0.0"], ["[::]", "127.0.0.1"]])
    func `addresses of both families at one port can be listened on together`(hosts: [String]) async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let port = try freePort()
        for threads in [1, 2] {
            let proxy = try await RunningProxy(
                to: origin,
                proxy:
                    "listen: [\(hosts.map { "\"\($0):\(port)\"" }.joined(separator: ", "))]\nopen: true\nthreads: \(threads)",
                listeners: 2)
            for host in ["127.0.0.1", "[::1]"] {
                let answer = try await ChildProcess.run([
                    "curl", "-sS", "-x", "http://\(host):\(port)", "http://api.test/",
                ])
                #expect(answer.output == "ok", "\(answer.transcript)")
            }
            #expect(try await proxy.terminate() == .exited(0))
        }
    }

    @Test func `a listener that the proxy itself keeps from opening is told so`() async throws {
        let origin = try RecordingOrigin { try $0.respond(body: "ok") }
        let port = try freePort()
        let proxy = try await RunningProxy(to: origin, proxy: "listen: \"[::]:\(port)\"\nopen: true")
        let file = "config.yaml"
        let text = try proxy.directory.read(file)
        try proxy.directory.write(
            text.replacing("listen: \"[::]:\(port)\"", with: "listen: [\"[::]:\(port)\", \"0.0.0.0:\(port)\"]"),
            to: file)
        proxy.process.signal(SIGHUP)
        try await eventually("the refusal") { proxy.log.contains("this proxy itself listens at [::]:\(port)") }
        #expect(!proxy.log.contains("end the process that listens there"))
    }

    // MARK: The next proxy

    @Test(arguments: ["http", "https"])
    func `a next proxy that wants a password is named, for tokens and for requests`(scheme: String) async throws {
        let next = try RecordingOrigin {
            try $0.send("HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic realm=\"x\"\r\nContent-Length: 0\r\n\r\n")
        }
        let endpoint = try TokenEndpoint.plain()
        let proxy = try await RunningProxy(
            ProxyConfiguration(
                admin: "",
                clients: [
                    ProxyConfiguration.client(
                        tokenEndpoint: "\(scheme)://idp.test/token", "proxy: \(next.url)"),
                    ProxyConfiguration.client("good", tokenEndpoint: endpoint.url),
                ],
                upstreams: [
                    ProxyConfiguration.upstream(url: "http://127.0.0.1:1"),
                    "  - {host: far.test, url: \"\(scheme)://far.test\", client: good, proxy: \(next.url), allow_plaintext: true}",
                ]))
        let answer = try await proxy.get("http://far.test/")
        #expect(answer.status == 502 && answer.text.contains("The next proxy answered 407"), "\(answer.text)")
        #expect(answer.field("Proxy-Authenticate") == nil)
        try await eventually("its line") { proxy.log.contains("The next proxy requires a login") }
        let status = try await eventually("the client's") {
            let run = try await RunningProxy.run([
                "status", "--exit-zero", "--config", proxy.directory.path(of: "config.yaml"),
            ])
            return run.output.contains("the next proxy requires a login, or refuses") ? run : nil
        }
        #expect(status.output.contains("407"), "\(status.transcript)")
    }
}
