import Testing

@testable import HeimdallrProxy

@Suite struct ProcessArgumentsTests {
    @Test func `each argument ends with a NUL byte, an empty one too`() {
        #expect(ProcessArguments.parse(Array("a\0b c\0\0d\0".utf8)) == ["a", "b c", "", "d"])
        #expect(ProcessArguments.parse(Array("a\0\0".utf8)) == ["a", ""])
        #expect(ProcessArguments.parse(Array("a".utf8)) == ["a"])
        #expect(ProcessArguments.parse([0x61, 0xFF, 0]) == ["a\u{FFFD}"])
    }
}

@Suite struct CommandKeeperTests {
    @Test(arguments: [
        ("12 (sh) S 34 12 12", 34), ("12 (a) b) (c) R 7 1", 7), ("12 (x", nil), ("", nil), ("12 (sh)", nil),
        ("12 (sh) S x", nil),
    ])
    func `the parent stands behind a name that may hold anything`(stat: String, parent: Int32?) {
        #expect(CommandKeeper.parent(inStat: Array(stat.utf8)) == parent)
    }

    @Test(arguments: [
        CommandKeeper.Report.ended(.exited(3)), .ended(.signalled(9)), .notStarted(2),
    ])
    func `a keeper's report arrives as it was sent`(report: CommandKeeper.Report) {
        #expect(CommandKeeper.Report(report.bytes) == report)
    }

    @Test(arguments: ["", "-", "3 x", "99999999999"])
    func `a text that is no report of a keeper is refused`(text: String) {
        #expect(CommandKeeper.Report(Array(text.utf8)) == nil)
    }
}
