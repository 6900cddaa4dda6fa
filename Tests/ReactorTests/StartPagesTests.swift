import Foundation
import Reactor
import Testing

@Suite("Pages that only the start needed")
struct StartPagesTests {
    /// Of this process: KiB of pages of files that are in memory, code among them.
    private func residentFilePages() throws -> Int {
        let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
        let line = try #require(status.split(separator: "\n").first { $0.hasPrefix("RssFile:") })
        return try #require(line.split(whereSeparator: { " \t".contains($0) }).dropFirst().first.flatMap { Int($0) })
    }

    @Test("the pages of the start leave memory, and come back as they were when they are needed")
    func release() throws {
        let before = try residentFilePages()
        StartPages.release()
        let after = try residentFilePages()
        #expect(after < before)
        #expect((0..<1000).map { String($0 * $0) }.last == "998001")
    }
}
