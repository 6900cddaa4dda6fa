/// Finds out whether bytes contain one of a few texts, in one pass that skips most bytes (the algorithm of Wu and Manber). A
/// value, for any thread.
public struct TextFinder: Sendable {
    private let texts: [[UInt8]]
    /// Length of the shortest text. The pass looks at the last two bytes of a window of this length.
    private let window: Int
    /// Distance to the next window in which a text can begin, for each hash of two bytes.
    private let steps: [UInt8]

    private static let slots = 1024
    private static let maxWindow = 64

    /// - Parameter texts: texts of at least two bytes. Shorter texts are not found.
    public init(_ texts: Set<[UInt8]>) {
        self.texts = texts.filter { $0.count > 1 }
        window = min(self.texts.map(\.count).min() ?? 0, Self.maxWindow)
        var steps = Array(repeating: UInt8(max(1, window - 1)), count: Self.slots)
        for text in self.texts {
            for end in 1..<window {
                let slot = Self.slot(text[end - 1], text[end])
                steps[slot] = min(steps[slot], UInt8(window - 1 - end))
            }
        }
        self.steps = steps
    }

    public func isIn(_ bytes: Span<UInt8>) -> Bool {
        guard window > 1 else { return false }
        let steps = steps.span
        var end = window - 1
        while end < bytes.count {
            let step = Int(steps[Self.slot(bytes[end - 1], bytes[end])])
            if step == 0, isAtStart(of: bytes.extracting((end - window + 1)...)) { return true }
            end += max(1, step)
        }
        return false
    }

    @inline(__always) private static func slot(_ one: UInt8, _ other: UInt8) -> Int {
        (Int(one) << 4 ^ Int(other)) & (slots - 1)
    }

    private func isAtStart(of bytes: Span<UInt8>) -> Bool {
        texts.contains { $0.count <= bytes.count && bytes.extracting(first: $0.count).elementsEqual($0) }
    }
}
