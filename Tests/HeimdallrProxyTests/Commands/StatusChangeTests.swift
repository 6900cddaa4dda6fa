import Testing
import WireText

@testable import HeimdallrProxy

@Suite("status --watch: what is new, and how it is drawn")
struct StatusChangeTests {
    private func status(_ left: Int, uptime: Int = 1, requests: Int = 0) throws -> JSONValue {
        let text = """
            {"uptime_seconds": \(uptime), "clients": [{"client": "a", "expires_in_seconds": \(left)}],
            "requests_in_flight": \(requests), "upstreams": [{"mean_duration_seconds": 0.\(uptime)}]}
            """
        return try JSONParser.parse(Array(text.utf8))
    }

    @Test func `the status has changed if more than its clocks have`() throws {
        var change = StatusChange()
        func isNew(_ status: JSONValue?) -> Bool { change.take(status) }
        #expect(isNew(try status(60)))
        #expect(!isNew(try status(59, uptime: 2)))
        #expect(isNew(try status(58, uptime: 3, requests: 1)))
        #expect(!isNew(try status(57, uptime: 4, requests: 1)))
        #expect(isNew(try status(300, uptime: 5, requests: 1)), "another token")
        #expect(!isNew(try status(300, uptime: 5, requests: 1)))
        #expect(isNew(nil), "the proxy is gone")
        #expect(!isNew(nil))
        #expect(isNew(try status(299, uptime: 1)))
    }

    @Test func `a frame fits the screen and leaves nothing of the one before`() {
        #expect(ScreenText.frame("a\nb\n", rows: 5, columns: 10) == "\u{1B}[Ha\u{1B}[K\r\nb\u{1B}[K\r\n\u{1B}[J")
        #expect(ScreenText.frame("123456\n", rows: 5, columns: 5).contains("1234…\u{1B}[K"))
        let tall = ScreenText.frame((1...9).map { "line \($0)\n" }.joined(), rows: 5, columns: 20)
        #expect(tall.contains("line 3") && !tall.contains("line 4") && tall.contains("… 6 more lines"))
        #expect(tall.split(separator: "\r\n").count == 5, "four lines, and what clears the rest")
    }
}
