import HTTPMessage
import WireText

/// An answer that is held until the proxy knows whether the program gets it.
struct HeldAnswer {
    let head: ResponseHead
    private(set) var body: [UInt8] = []
    private(set) var trailers: [(name: [UInt8], value: [UInt8])] = []
    /// Whether the program can get the whole answer.
    private(set) var isWhole = true
    private(set) var received = 0

    /// Length of the longest body that is kept.
    static let limit = 64 * 1024
    /// Length of the body after which the exchange with the upstream is aborted.
    private static let mostRead = 1 << 20

    /// - Parameter lacksBody: whether the body, if the answer has one, is not read.
    init(head: ResponseHead, lacksBody: Bool = false) {
        self.head = head
        isWhole = !lacksBody || !head.framing.hasContent
    }

    /// Returns the answer with what its end brought.
    func ended(by end: UpstreamEnd) -> HeldAnswer {
        var answer = self
        answer.trailers = end.trailers
        if end.error != nil { answer.isWhole = false }
        return answer
    }

    /// - Returns: whether to read on.
    mutating func append(_ piece: Span<UInt8>) -> Bool {
        received += piece.count
        if received > Self.limit {
            isWhole = false
            body = []
        } else {
            body.append(copying: piece)
        }
        return received <= Self.mostRead
    }
}
