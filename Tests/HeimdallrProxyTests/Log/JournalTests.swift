import Foundation
import Logging
import Testing

@testable import HeimdallrProxy

@Suite struct JournalTests {
    @Test func `a writer for the journal puts its priority before each line`() throws {
        let pipe = Pipe()
        let writer = LogWriter(
            format: .text, output: LineDescriptor(pipe.fileHandleForWriting.fileDescriptor),
            showsPriority: true)
        writer.write(Array("one\n".utf8), level: .error)
        writer.write(Array("two\n".utf8), level: .warning)
        writer.write(Array("three".utf8))
        writer.write(Array("four".utf8), level: .debug)
        writer.close()
        try pipe.fileHandleForWriting.close()
        let text = String(decoding: try pipe.fileHandleForReading.readToEnd() ?? Data(), as: UTF8.self)
        #expect(text == "<3>one\n<4>two\n<6>three\n<7>four\n")
    }
}
