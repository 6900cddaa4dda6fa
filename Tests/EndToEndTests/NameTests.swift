import Foundation
import TestSupport
import Testing

@Suite("name servers that do not answer, and this machine's own addresses", .timeLimit(.minutes(3)))
struct NameTests {
    private static let obstacle: String? = {
        guard geteuid() == 0 else { return "network namespaces need root" }
        let probe = Process()
        probe.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        probe.arguments = [
            "--net", "--mount", "sh", "-c", "ip link set lo up && ip route add local 9.9.9.9/32 dev lo",
        ]
        probe.standardError = FileHandle.nullDevice
        guard (try? probe.run()) != nil else { return "there is no unshare" }
        probe.waitUntilExit()
        return probe.terminationStatus == 0 ? nil : "there are no network namespaces here"
    }()

    private struct Answer: Decodable {
        var status: Int
        var error: String?
        /// In seconds.
        var time: Double
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `names that hang hold nobody up, and nothing leads back into this machine`() async throws {
        let folder = try TemporaryDirectory()
        let output = try await ChildProcess.output(
            of: [
                "unshare", "--net", "--mount", "/usr/bin/python3", fixture("deaf_names.py"),
                try Repository.executable(), folder.path,
            ], within: .seconds(100))
        let results = try JSONDecoder().decode([String: [Answer]].self, from: Data(output.utf8))
        func statuses(_ key: String) -> [Int] { (results[key] ?? []).map(\.status) }

        #expect(statuses("waiting") == Array(repeating: 504, count: 25))
        #expect(results["waiting"]?.allSatisfy { $0.error == "dns_timeout" && $0.time < 7 } == true)
        for key in ["beside", "probes"] {
            #expect(statuses(key).count > 10)
            #expect(Set(statuses(key)) == [200], "\(key)")
            let longest = results[key]?.map(\.time).max() ?? 0
            #expect(longest < 1, "\(key) took \(longest) s")
        }

        #expect(statuses("own service") == [403, 403])
        #expect(results["own service"]?.first?.error == "destination_ip_prohibited")
        #expect(statuses("elsewhere") == [200, 200])
        #expect(statuses("since then") == [403, 403])
        #expect(statuses("again elsewhere") == [200])
        #expect(statuses("admin port") == Array(repeating: 508, count: 6))
        // No slot is lost although abandoned lookups still hang.
        #expect(results["admin port"]?.allSatisfy { $0.time < 1 } == true)
    }

    private struct LateAnswer: Decodable {
        var status: Int
        var detail: String?
        /// In seconds.
        var time: Double
    }

    @Test(.disabled(if: obstacle != nil, "\(obstacle ?? "")"))
    func `a name server that falls silent, drops AAAA, or is replaced costs a moment`() async throws {
        let folder = try TemporaryDirectory()
        let output = try await ChildProcess.output(
            of: [
                "unshare", "--net", "--mount", "/usr/bin/python3", fixture("silent_names.py"),
                try Repository.executable(), folder.path,
            ], within: .seconds(100))
        let results = try JSONDecoder().decode([String: [LateAnswer]].self, from: Data(output.utf8))
        func all(_ key: String, _ status: Int, within limit: Double) {
            let answers = results[key] ?? []
            #expect(!answers.isEmpty, "\(key)")
            #expect(answers.allSatisfy { $0.status == status && $0.time < limit }, "\(key): \(answers)")
        }
        all("silence", 504, within: 4)
        #expect(
            results["silence"]?.first?.detail?.hasPrefix(
                "Could not resolve host early.example: no name server answered in time. ") == true)
        // glibc itself would ask the old server for 10 s and more.
        all("waiting", 200, within: 4)
        all("after", 200, within: 4)
        all("half", 200, within: 4)
        all("missing", 502, within: 4)
        #expect(results["missing"]?.first?.detail?.hasPrefix("Could not resolve host no-such.example: ") == true)
        all("last good", 200, within: 4)
    }
}
