import Testing
import WireText

@Suite("Texts are found wherever they stand") struct TextFinderTests {
    private static let texts = ["PLACEHOLDER", "heimdallr1_", "aaaaaaab", "0123456789012345678901234567890123456789"]

    private func finds(_ text: String, among texts: [String] = texts) -> Bool {
        TextFinder(Set(texts.map { Array($0.utf8) })).isIn(Array(text.utf8).span)
    }

    @Test(arguments: texts) func `a text is found at each position, and a part of it is not`(text: String) {
        for before in 0..<40 {
            for after in [0, 1, 30] {
                let start = String(repeating: "a", count: before)
                let end = String(repeating: "P", count: after)
                #expect(finds(start + text + end), "\(before) \(after)")
                let tail = "#" + String(text.dropFirst()) + end
                #expect(!finds(tail))
                let head = String(start.prefix(6)) + String(text.dropLast()) + end
                #expect(!finds(head))
            }
        }
    }

    @Test func `a finder without texts finds nothing, and none is found in short bytes`() {
        #expect(!finds("anything", among: []))
        for count in 0..<8 { #expect(!finds(String("PLACEHOLDER".prefix(count)))) }
    }

    @Test func `any bytes give the answer that a plain search gives`() {
        var state: UInt64 = 0x9E37_79B9_7F4A_7C15
        func next(_ limit: UInt64) -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return (state >> 33) % limit
        }
        // Few different bytes, so that texts are often found, and more often nearly.
        func text(_ count: UInt64) -> String {
            String((0..<count).map { _ in Character(["a", "b", "c"][Int(next(3))]) })
        }
        for _ in 0..<400 {
            let texts = (0..<1 + next(5)).map { _ in text(2 + next(6)) }
            let bytes = text(next(60))
            let isThere = texts.contains { bytes.contains($0) }
            #expect(finds(bytes, among: texts) == isThere, "\(texts) in \(bytes)")
        }
    }
}
