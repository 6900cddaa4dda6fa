import Foundation
import TestSupport
import Testing

@Suite("kept connections that the network has forgotten", .timeLimit(.minutes(3)))
struct ForgottenConnectionTests {
    private struct Outcome: Decodable {
        struct Answer: Decodable {
            var status: Int
            /// In seconds.
            var time: Double
        }
        var before: [String: [Answer]]
        var results: [String: [Answer]]
        /// Number of connections whose packets are dropped.
        var forgotten: Int
        /// Port and method of each request that the server got.
        var seen: [String]
    }

    @Test(.disabled(if: PacketFilter.obstacle != nil, "\(PacketFilter.obstacle ?? "")"))
    func `a GET on a forgotten connection goes out once more in every version of HTTP, and a POST does not`()
        async throws
    {
        let folder = try TemporaryDirectory()
        let output = try await ChildProcess.output(
            of: [
                "unshare", "--net", "--mount", "/usr/bin/python3", fixture("forgotten_connections.py"),
                try Repository.executable(), folder.path,
            ], within: .seconds(150))
        let outcome = try JSONDecoder().decode(Outcome.self, from: Data(output.utf8))
        #expect(outcome.before.values.allSatisfy { $0.allSatisfy { $0.status == 200 } }, "\(outcome.before)")
        #expect(outcome.forgotten == 4)
        for leg in ["plain", "tls", "http2"] {
            let answers = outcome.results[leg] ?? []
            #expect(!answers.isEmpty, "\(leg)")
            // `response_timeout` is 50 s.
            for answer in answers { #expect(answer.status == 200 && answer.time < 20, "\(leg): \(answers)") }
        }
        #expect(outcome.results["post"]?.map(\.status) == [0])
        #expect(outcome.seen.filter { $0.contains("POST") } == [])
        #expect(outcome.seen.count == 14)
    }
}
