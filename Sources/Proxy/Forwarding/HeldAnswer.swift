import HTTPMessage
import WireText

/// An answer kept until its use is decided.
struct HeldAnswer {
    let head: ResponseHead
    private(set) var body: [UInt8] = []
    var trailers: [(name: [UInt8], value: [UInt8])] = []
    var isWhole = true
    private(set) var count = 0

    /// A longer body is not kept.
    static let limit = 64 * 1024
    /// The connection is closed after this many bytes.
    private static let mostRead = 1 << 20

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
