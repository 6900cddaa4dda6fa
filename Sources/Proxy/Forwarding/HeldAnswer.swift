import HTTPMessage
import WireText

/// An answer that is held until the proxy knows whether the client gets it.
struct HeldAnswer {
    let head: ResponseHead
    private(set) var body: [UInt8] = []
    var trailers: [(name: [UInt8], value: [UInt8])] = []
    var isWhole = true
    private(set) var count = 0

    /// Number of bytes of the longest body that is kept.
    static let limit = 64 * 1024
    /// Number of bytes of the body after which the connection is closed.
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
