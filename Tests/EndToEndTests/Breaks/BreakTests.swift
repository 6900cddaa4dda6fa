import Foundation
import TestSupport
import Testing

@Suite(
    "what is broken is told with its remedy by the answer, the log, status and doctor", .timeLimit(.minutes(3)))
struct BreakTests {
    private static let playable = Break.all.filter { $0.obstacle == nil }

    @Test func `the table has at least thirty breaks, and no row a key that nothing reads`() {
        #expect(Break.all.count >= 30)
        for example in Break.all {
            #expect(example.unknownKeys == [], "\(example)")
            #expect(["answer", "log", "status", "doctor", "start"].contains { !example[$0].isEmpty }, "\(example)")
        }
        #expect(Set(Break.all.map(\.name)).count == Break.all.count)
    }

    @Test(arguments: playable.filter { $0["start"].isEmpty })
    func `a break is told where people look`(_ example: Break) async throws {
        let broken = try await BrokenProxy(example)
        let proxy = try await broken.start()
        if !example["answer"].isEmpty || !example["ask"].isEmpty || !example["run"].isEmpty {
            let answer = try await broken.answer(of: proxy)
            for words in example["answer"] { #expect(answer.contains(words), "\(words)\nin\n\(answer)") }
        }
        for words in example["log"] {
            do { try await eventually("\(words)") { proxy.log.contains(words) } } catch {
                Issue.record("\(words)\nin\n\(proxy.log)")
            }
        }
        if !example["status"].isEmpty {
            let status = try await eventuallyTold(example["status"]) { try await broken.status(of: proxy).output }
            if let status { Issue.record("\(status)") }
        }
        guard !example["doctor"].isEmpty else { return }
        let doctor = try await broken.doctor(of: proxy)
        for words in example["doctor"] {
            #expect(doctor.output.contains(words), "\(words)\nin\n\(doctor.transcript)")
        }
    }

    /// Waits until the text has all words.
    /// - Returns: what is missing, with the last text.
    private func eventuallyTold(_ words: [String], _ text: @Sendable () async throws -> String) async throws -> String?
    {
        let last = Recorder<String>()
        do {
            try await eventually("told", within: .seconds(10)) {
                let told = try await text()
                last.append(told)
                return words.allSatisfy { told.contains($0) }
            }
            return nil
        } catch {
            let told = last.all.last ?? ""
            return "\(words.filter { !told.contains($0) })\nin\n\(told)"
        }
    }

    @Test(arguments: playable.filter { !$0["start"].isEmpty })
    func `a break that keeps the proxy from starting is told by its exit`(_ example: Break) async throws {
        let end = try await BrokenProxy(example).failedStart()
        for words in example["start"] { #expect(end.transcript.contains(words), "\(words)\nin\n\(end.transcript)") }
    }
}
