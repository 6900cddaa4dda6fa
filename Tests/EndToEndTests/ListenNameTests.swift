import Foundation
import TestSupport
import Testing

@Suite("of a name's addresses the proxy listens on those that the machine has", .timeLimit(.minutes(2)))
struct ListenNameTests {
    private static let obstacle: String? = geteuid() == 0 ? nil : "namespaces need root"

    /// A wrapper with these lines in /etc/hosts.
    private static func namespace(_ hosts: String, network: String? = nil) -> [String] {
        let script = """
            printf '%b' "\(hosts.replacing("\n", with: "\\n"))" > "$PWD/hosts" &&
            mount --bind "$PWD/hosts" /etc/hosts && \(network ?? ":") && exec "$@"
            """
        return ["unshare", "--mount"] + (network == nil ? [] : ["--net"]) + ["sh", "-c", script, "sh"]
    }

    private static func listeners(_ proxy: RunningProxy) -> [Substring] {
        proxy.log.split(separator: "\n").filter { $0.contains(" listening ") }
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `an address of a name that another machine has is left out, at each listener`() async throws {
        let origin = try RecordingOrigin()
        let hosts = "127.0.0.1 localhost\n192.0.2.77 two.test\n127.0.0.1 two.test\n"
        let proxy = try await RunningProxy(
            to: origin, proxy: "listen: \"two.test:0\"\nopen: true", upstream: "listen: \"two.test:0\"",
            admin: "listen: \"two.test:0\"\nhosts: [two.test]\ntoken: {file: FOLDER/token}",
            files: ["token": String(repeating: "t", count: 32)], listeners: 2, under: Self.namespace(hosts))
        #expect(Self.listeners(proxy).count == 2, "\(proxy.log)")
        #expect(try await proxy.get("http://api.test/").status == 200)
        let administration = try await proxy.administration()
        let probe = try await RawClient.connect(port: administration.port)
        try await probe.send("GET /livez HTTP/1.1\r\nHost: two.test\r\n\r\n")
        #expect(try await probe.response(to: "GET").status == 200)
        let check = try await ChildProcess.run(
            Self.namespace(hosts) + [
                try Repository.executable(), "check", "--config", proxy.directory.path(of: "config.yaml"),
            ], directory: proxy.directory.path)
        #expect(check.ending == .exited(0), "\(check.transcript)")
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `localhost of both families is enough on a machine without IPv6`() async throws {
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin, proxy: "listen: \"localhost:8080\"", admin: "listen: \"localhost:8081\"",
            under: Self.namespace(
                "::1 localhost\n127.0.0.1 localhost\n",
                network: "ip link set lo up && echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6"))
        #expect(Self.listeners(proxy).map { $0.contains("127.0.0.1:8080") } == [true], "\(proxy.log)")
        #expect(try await proxy.administration().port == 8081)
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `a name whose addresses are all of other machines is an error`() async throws {
        let folder = try TemporaryDirectory()
        let file = try folder.write(
            "proxy: {listen: \"far.test:0\", open: true}\nupstreams: [{host: a.test}]", to: "config.yaml")
        let run = try await ChildProcess.run(
            Self.namespace("127.0.0.1 localhost\n192.0.2.77 far.test\n192.0.2.78 far.test\n")
                + [try Repository.executable(), "serve", "--config", file], directory: folder.path)
        #expect(run.ending == .exited(1), "\(run.transcript)")
        #expect(run.errors.contains("can't listen on 192.0.2.77:0: this machine has no such address"))
    }
}
