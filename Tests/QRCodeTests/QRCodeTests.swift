import QRCode
import Testing

@Suite("QR code")
struct QRCodeTests {
    private let url = "https://idp.example.com/device?user_code=WDJB-MJHT"

    @Test("a QR code has the finder and timing patterns that a camera looks for")
    func finderPatterns() throws {
        let code = try #require(QRCode(url))
        #expect((code.width - 17) % 4 == 0)
        for (top, left) in [(0, 0), (0, code.width - 7), (code.width - 7, 0)] {
            for row in 0..<7 {
                for column in 0..<7 {
                    let ring = max(abs(row - 3), abs(column - 3))
                    #expect(code.isDark(row: top + row, column: left + column) == (ring != 2))
                }
            }
        }
        for index in 8..<code.width - 8 {
            #expect(code.isDark(row: 6, column: index) == index.isMultiple(of: 2))
            #expect(code.isDark(row: index, column: 6) == index.isMultiple(of: 2))
        }
    }

    @Test("a QR code has the same modules as an SVG path, inside a quiet zone")
    func svgPath() throws {
        let code = try #require(QRCode(url))
        var drawn: Set<[Int]> = []
        for run in code.svgPath.split(separator: "M") {
            let match = try #require(run.wholeMatch(of: /(\d+) (\d+)h(\d+)v1h-(\d+)z/))
            let numbers = try [match.1, match.2, match.3, match.4].map { try #require(Int($0)) }
            #expect(numbers[2] == numbers[3])
            for offset in 0..<numbers[2] { drawn.insert([numbers[1] - 4, numbers[0] + offset - 4]) }
        }
        for row in 0..<code.width {
            for column in 0..<code.width {
                #expect(drawn.contains([row, column]) == code.isDark(row: row, column: column))
            }
        }
        #expect(code.extent == code.width + 8)
    }

    @Test("a QR code has the same modules on a terminal, two rows a line, in its own colours")
    func terminal() throws {
        let code = try #require(QRCode(url))
        let lines = code.terminalText.split(separator: "\n")
        #expect(lines.count == (code.width + 5) / 2)
        for (index, line) in lines.enumerated() {
            #expect(line.hasPrefix("\u{1B}[30;107m") && line.hasSuffix("\u{1B}[0m"))
            let cells = Array(line.dropFirst(9).dropLast(4))
            #expect(cells.count == code.width + 4)
            for (column, cell) in cells.enumerated() {
                #expect(code.isDark(row: 2 * index - 2, column: column - 2) == (cell == "█" || cell == "▀"))
                #expect(code.isDark(row: 2 * index - 1, column: column - 2) == (cell == "█" || cell == "▄"))
            }
        }
    }

    @Test(
        "a text too long for any camera gets no QR code",
        arguments: ["", "a\u{0}b", String(repeating: "x", count: 513)])
    func refused(text: String) { #expect(QRCode(text) == nil) }

    @Test("a long URL fits into a QR code")
    func long() throws { #expect(try #require(QRCode(String(repeating: "x", count: 512))).width > 60) }
}
