import Testing
import WireText

@Suite struct ForeignTextTests {
    @Test(arguments: [
        "\u{202E}", "\u{2066}", "\u{9B}", "\u{85}", "\u{1B}", "\u{7F}", "\u{2028}", "\u{2029}", "\u{AD}", "\u{200B}",
        "\u{E000}", "\u{378}", "\t", "\r",
    ])
    func `no character turns, hides or breaks a line`(character: String) {
        #expect(ForeignText.printable("a\(character)b") == "a?b")
        #expect(ForeignText.lines("a\(character)b\nc") == "a?b\nc")
    }

    @Test func `what can be read stays, and a line is one line`() {
        #expect(ForeignText.printable("Zürich 東京 ✓ \"`<") == "Zürich 東京 ✓ \"`<")
        #expect(ForeignText.printable("a\nb") == "a?b")
        #expect(ForeignText.lines("a\n\nb\n") == "a\n\nb\n")
    }

    @Test func `a foreign text is cut at its limit`() {
        #expect(ForeignText.printable("abcd", most: 4) == "abcd")
        #expect(ForeignText.printable("abcde", most: 4) == "abcd…")
        #expect(ForeignText.printable(String(repeating: "e\u{301}", count: 1000)).unicodeScalars.count == 257)
    }
}
