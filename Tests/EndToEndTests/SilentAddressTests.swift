import Foundation
import TestSupport
import Testing

@Suite("a name whose first address is silent", .timeLimit(.minutes(3)))
struct SilentAddressTests {
    private struct Outcome: Decodable {
        struct Answer: Decodable {
            var status: Int
            /// In seconds.
            var time: Double
        }
        var results: [String: [Answer]]
        var seen: [String]
    }

    @Test(.disabled(if: PacketFilter.obstacle != nil, "\(PacketFilter.obstacle ?? "")"))
    func `every kind of outgoing connection reaches a second address while the first is silent`()
        async throws
    {
        let folder = try TemporaryDirectory()
        let output = try await ChildProcess.output(
            of: [
                "unshare", "--net", "--mount", "/usr/bin/python3", fixture("silent_addresses.py"),
                try Repository.executable(), folder.path,
            ], within: .seconds(150))
        let outcome = try JSONDecoder().decode(Outcome.self, from: Data(output.utf8))
        for leg in ["api", "token", "far", "next"] {
            let answers = outcome.results[leg] ?? []
            #expect(!answers.isEmpty, "\(leg)")
            // libcurl itself would go on after half of the 30 s of `api`.
            for answer in answers { #expect(answer.status == 200 && answer.time < 10, "\(leg): \(answers)") }
        }
        #expect(outcome.seen == ["api", "far", "hook", "next", "otlp", "token"])
    }
}
