import Foundation
import TestSupport
import Testing

/// Clients that make the proxy hold as much as they can, for a few bytes. One with small windows is `http2_allowance.py`.
@Suite("what the clients' connections hold is bounded", .timeLimit(.minutes(4)))
struct AllowanceTests {
    private static let mebibyte = 1 << 20

    /// Requests of `nobody.test` are refused, those of `silent.test` are not answered, and answers of `endless.test`
    /// and, over HTTP/2, `two.test` have no end.
    private static func proxy() async throws -> (RunningProxy, origins: ChildProcess) {
        let origins = try ChildProcess([try Repository.python(), fixture("http2_allowance.py"), "origins"])
        let ports = try await eventually("the origins' ports") {
            let lines = origins.output.split(separator: "\n")
            return lines.count == 3 ? lines.map(String.init) : nil
        }
        let configuration = ProxyConfiguration(
            proxy: "threads: 1", clients: [],
            upstreams: zip(["silent", "endless", "two"], ports).map { name, port in
                ProxyConfiguration.upstream(
                    "\(name).test", url: "http://127.0.0.1:\(port)",
                    "max_connections: 4000" + (name == "two" ? "\nhttp2: prior-knowledge" : "")
                )
                .replacing("    client: api\n", with: "")
            })
        let proxy = try await RunningProxy(
            configuration.text.replacing("clients:\n", with: "clients: {}\n"), files: configuration.files)
        // The memory of the first request stays, and is not tested here.
        #expect(try await proxy.get("http://nobody.test/").status == 403)
        return (proxy, origins)
    }

    struct Attack: CustomTestStringConvertible {
        let host: String
        let kind: String
        let connections: Int
        var testDescription: String { "\(kind) to \(host) on \(connections) connections" }
    }

    static let attacks = [
        Attack(host: "nobody.test", kind: "heads", connections: 12),
        Attack(host: "silent.test", kind: "heads", connections: 12),
        Attack(host: "silent.test", kind: "bodies", connections: 6),
        Attack(host: "endless.test", kind: "answers", connections: 6),
        Attack(host: "two.test", kind: "answers", connections: 6),
        Attack(host: "nobody.test", kind: "kept", connections: 500),
    ]

    private static func run(_ attack: Attack, against proxy: RunningProxy) async throws -> ChildProcess {
        let client = try ChildProcess([
            try Repository.python(), fixture("http2_allowance.py"), "127.0.0.1:\(proxy.port)", attack.host, attack.kind,
            "\(attack.connections)",
        ])
        try await eventually("silence", within: .seconds(100)) { client.output.contains("quiet") }
        return client
    }

    @Test(arguments: attacks) func `fifty connections together hold a fraction of what each stream may`(
        attack: Attack
    ) async throws {
        let (proxy, origins) = try await Self.proxy()
        let before = try proxy.process.residentMemory()
        let client = try await Self.run(attack, against: proxy)
        defer { client.kill() }
        let grown = try proxy.process.residentMemory() - before
        #expect(grown < 32 * Self.mebibyte, "\(grown >> 20) MiB; \(client.output)")
        // Others are served meanwhile.
        #expect(try await proxy.get("http://nobody.test/").status == 403)
        origins.kill()
    }

    @Test(.enabled(if: MemoryGroup.isAvailable, "needs a cgroup whose memory limit can be set"))
    func `a proxy with the manifests' 128 MiB survives fifty connections that hold all they can`() async throws {
        let (proxy, origins) = try await Self.proxy()
        let group = try MemoryGroup(limit: 128 * Self.mebibyte)
        defer { group.remove() }
        try group.add(proxy.process.pid)
        var clients: [ChildProcess] = []
        for (host, kind) in [("nobody.test", "heads"), ("silent.test", "heads")] {
            clients.append(
                try await Self.run(Attack(host: host, kind: kind, connections: 25), against: proxy))
        }
        #expect(proxy.process.ending == nil)
        #expect(try await proxy.get("http://nobody.test/").status == 403)
        for client in clients { client.kill() }
        origins.kill()
        proxy.process.kill()
        try await eventually("the end") { proxy.process.ending != nil }
    }
}

/// A cgroup with a limit of memory, version 1 or 2 (Documentation/admin-guide/cgroup-v2.rst).
private struct MemoryGroup {
    private let folder: String

    /// The tests' own cgroup, and the name of the limit's file; `nil` where no group can be made.
    private static let parent: (folder: String, limit: String)? = {
        guard let lines = try? String(contentsOfFile: "/proc/self/cgroup", encoding: .utf8).split(separator: "\n")
        else {
            return nil
        }
        for line in lines {
            let words = line.split(separator: ":", maxSplits: 2, omittingEmptySubsequences: false).map(String.init)
            guard words.count == 3 else { continue }
            let isSecond = words[0] == "0"
            guard isSecond || words[1].split(separator: ",").contains("memory") else { continue }
            let folder = "/sys/fs/cgroup" + (isSecond ? "" : "/memory") + words[2]
            let limit = isSecond ? "memory.max" : "memory.limit_in_bytes"
            let probe = folder + "/heimdallr-probe-\(ProcessInfo.processInfo.processIdentifier)"
            guard unsafe mkdir(probe, 0o755) == 0 else { continue }
            defer { unsafe rmdir(probe) }
            if unsafe access(probe + "/" + limit, W_OK) == 0 { return (folder, limit) }
        }
        return nil
    }()

    static var isAvailable: Bool { parent != nil }

    init(limit: Int) throws {
        guard let parent = Self.parent else { throw TestFailure("no cgroup") }
        folder = parent.folder + "/heimdallr-tests-\(ProcessInfo.processInfo.processIdentifier)"
        guard unsafe mkdir(folder, 0o755) == 0 else { throw TestFailure("mkdir \(folder): errno \(errno)") }
        try write("\(limit)", to: parent.limit)
    }

    func add(_ pid: Int32) throws { try write("\(pid)", to: "cgroup.procs") }

    private func write(_ text: String, to file: String) throws {
        try text.write(toFile: folder + "/" + file, atomically: false, encoding: .utf8)
    }

    func remove() { unsafe rmdir(folder) }
}
