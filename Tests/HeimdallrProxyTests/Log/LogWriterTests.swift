import Administration
import Configuration
import Dispatch
import Foundation
import Logging
import Synchronization
import Testing

@testable import HeimdallrProxy

@Suite struct LogWriterTests {
    /// A pipe, read to its end once the writer is closed.
    private final class Reader: LineOutput {
        let pipe = Pipe()
        private let lines: LineDescriptor

        init() { lines = LineDescriptor(pipe.fileHandleForWriting.fileDescriptor) }

        /// The writer's thread keeps this object, and so the pipe, until its last attempt to write.
        func take(_ bytes: [UInt8]) -> (count: Int, failure: SystemCallError?) { lines.take(bytes) }

        func available() -> String { String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self) }

        func rest() throws -> String {
            try pipe.fileHandleForWriting.close()
            return String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        }
    }

    @Test func `lines arrive whole and in order, with a line feed each`() throws {
        let reader = Reader()
        let writer = LogWriter(format: .text, output: reader)
        for number in 0..<500 {
            writer.write(Array("line \(number)\(number % 2 == 0 ? "\n" : "")".utf8))
        }
        writer.close()
        #expect(try reader.rest() == (0..<500).map { "line \($0)\n" }.joined())
    }

    @Test func `a single line is written without a flush`() {
        let reader = Reader()
        let writer = LogWriter(format: .text, output: reader)
        writer.write(Array("first".utf8))
        #expect(reader.available() == "first\n")
        writer.write(Array("second".utf8))
        #expect(reader.available() == "second\n")
        writer.close()
    }

    @Test func `lines of many threads never mix`() async throws {
        let reader = Reader()
        let writer = LogWriter(format: .text, output: reader)
        let lines = Set((0..<8).flatMap { thread in (0..<50).map { "thread \(thread) line \($0)" } })
        await withTaskGroup { group in
            for line in lines { group.addTask { writer.write(Array(line.utf8)) } }
        }
        writer.close()
        let read = try reader.rest().split(separator: "\n").map(String.init)
        #expect(read.count == lines.count)
        #expect(Set(read) == lines)
    }

    @Test func `flush returns when everything before it is written`() {
        let reader = Reader()
        let writer = LogWriter(format: .text, output: reader)
        for round in 0..<50 {
            writer.write(Array("a \(round)".utf8))
            writer.write(Array("b \(round)".utf8))
            writer.flush()
            #expect(reader.available() == "a \(round)\nb \(round)\n")
        }
        writer.close()
    }

    @Test func `a reader that stops costs bounded memory, blocks nobody, and is told what it missed`() throws {
        let reader = Reader()
        let capacity = 10_000
        let writer = LogWriter(format: .text, output: reader, capacity: capacity)
        let line = [UInt8](repeating: UInt8(ascii: "x"), count: 99)
        let sent = 20_000  // 2 MB: the pipe holds 64 KiB, the writer twice its capacity at most.
        for _ in 0..<sent { writer.write(line) }
        writer.flush(limit: .milliseconds(10))

        let all = Mutex(Data())
        let finished = DispatchSemaphore(value: 0)
        DispatchQueue(label: "reader").async {
            let data = (try? reader.pipe.fileHandleForReading.readToEnd()) ?? Data()
            all.withLock { $0 = data }
            finished.signal()
        }
        writer.close()
        try reader.pipe.fileHandleForWriting.close()
        finished.wait()

        let lines = String(decoding: all.withLock { $0 }, as: UTF8.self).split(separator: "\n")
        let whole = lines.filter { $0.count == 99 && $0.allSatisfy { $0 == "x" } }
        let notices = lines.filter { $0.contains("log lines dropped") }
        #expect(whole.count + notices.count == lines.count)
        let dropped = notices.compactMap { $0.firstMatch(of: /count=(\d+)/).flatMap { Int($0.1) } }.reduce(0, +)
        #expect(whole.count + dropped == sent)
        #expect(whole.count * 100 < 65_536 + 3 * capacity)
    }

    @Test func `a closed reader ends nothing, and no line counts as written`() throws {
        ProcessHygiene.apply()
        let reader = Reader()
        let writer = LogWriter(format: .text, output: reader)
        writer.write(Array("somebody reads this".utf8))
        writer.flush()
        try reader.pipe.fileHandleForReading.close()
        writer.write(Array("nobody reads this".utf8))
        writer.flush()
        writer.write(Array("nor this".utf8))
        writer.close()
        #expect(writer.counts == .init(written: 1, dropped: 2))
    }

    @Test func `what is logged becomes a line with all its metadata`() throws {
        let reader = Reader()
        let writer = LogWriter(format: .text, output: reader)
        var logger = Logger(label: "test") { _ in LineLogHandler(writer: writer, level: LogLevel(.info)) }
        logger[metadataKey: "client"] = "billing"
        logger.debug("not shown")
        logger.warning("token request failed", metadata: ["reason": "timed out"])
        writer.close()
        let text = try reader.rest()
        #expect(text.hasSuffix(" warning token request failed client=billing reason=\"timed out\"\n"))
        #expect(text.split(separator: "\n").count == 1)
    }
}
