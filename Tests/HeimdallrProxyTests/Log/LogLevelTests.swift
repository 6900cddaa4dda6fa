import Configuration
import Logging
import Synchronization
import TestSupport
import Testing

@testable import HeimdallrProxy

@Suite struct LogLevelTests {
    private let level = LogLevel(.info)

    private func answer(_ wanted: (String, String?)?) -> (isGood: Bool, text: String) {
        level.answer(wanted, Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    }

    @Test func `a level that was asked for counts for its time, and then the configuration's`() async throws {
        let ended = Mutex<[LogSettings.Level]>([])
        level.set(.init(level: .debug, time: .milliseconds(50))) { level in ended.withLock { $0.append(level) } }
        #expect(level.current == .debug)
        try await eventually("it is over") { level.current == .info }
        try await eventually("and said") { ended.withLock { $0 } == [.info] }
    }

    @Test func `the level set last counts, and an earlier one's end changes nothing`() async throws {
        let ended = Mutex(0)
        level.set(.init(level: .debug, time: .milliseconds(50))) { _ in ended.withLock { $0 += 1 } }
        level.set(.init(level: .error, time: .seconds(60))) { _ in ended.withLock { $0 += 1 } }
        try await holds("the first one's end changes nothing", for: .milliseconds(150)) { level.current == .error }
        level.reset()
        #expect(level.current == .info)
        #expect(ended.withLock { $0 } == 0)
    }

    @Test func `another configuration's level waits for its turn`() async throws {
        level.set(.init(level: .debug, time: .milliseconds(200)))
        level.configure(.warning)
        #expect(level.current == .debug)
        #expect(answer(nil).text == "debug for another 1s, then warning\n")
        try await eventually("it is over") { level.current == .warning }
        level.configure(.error)
        #expect(answer(nil).text == "error, as the configuration says\n")
    }

    @Test func `the answer to a new level names the level and its time`() {
        #expect(answer(("debug", "90m")) == (true, "The log's level is debug for another 1h 30m, then info.\n"))
        #expect(level.current == .debug)
        #expect(answer(("DEBUG", nil)) == (true, "The log's level is debug for another 10m, then info.\n"))
        #expect(answer(("info", "5m")) == (true, "The log's level is info, as the configuration says.\n"))
        #expect(level.current == .info)
    }

    @Test(
        arguments: [("debgu", nil), ("", nil), ("debug", "25h"), ("debug", "0s"), ("debug", "")] as [(String, String?)])
    func `a level that does not exist changes nothing`(word: String, time: String?) {
        let answer = answer((word, time))
        #expect(!answer.isGood && answer.text.hasPrefix("error: "), "\(answer.text)")
        #expect(level.current == .info)
    }

    @Test func `every logger goes by it, those of libraries from warnings on`() {
        let writer = LogWriter(format: .text)
        defer { writer.close() }
        let ours = LineLogHandler(writer: writer, level: level)
        let library = LineLogHandler(writer: writer, level: level, lowest: .warning)
        var own = ours
        own.logLevel = .error
        #expect([ours, library, own].map(\.logLevel) == [.info, .warning, .error])
        level.configure(.trace)
        #expect([ours, library, own].map(\.logLevel) == [.trace, .warning, .error])
        level.configure(.error)
        #expect([ours, library, own].map(\.logLevel) == [.error, .error, .error])
    }
}
