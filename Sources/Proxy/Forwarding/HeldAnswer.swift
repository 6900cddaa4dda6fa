import HTTPMessage
import WireText

/// An answer that is held back.
struct HeldAnswer {
    let head: ResponseHead
    private(set) var body: [UInt8] = []
    var trailers: [(name: [UInt8], value: [UInt8])] = []
    /// All of it is here.
    var isWhole = true
    private var count = 0

    init(_ head: ResponseHead) { self.head = head }

    /// A longer body is not kept: it would be in the way of others, and a 401 says what it has to say in less.
    static let limit = 64 * 1024
    /// Past this, a connection is not worth reading on for.
    private static let mostRead = 1 << 20

    /// - Returns: whether it is worth reading on.
    mutating func append(_ piece: Span<UInt8>) -> Bool {
        count += piece.count
        if count > Self.limit {
            isWhole = false
            body = []
        } else {
            body.append(copying: piece)
        }
        return count <= Self.mostRead
    }
}
