/// The body of an answer that is held back, as it came.
struct HeldBody {
    private(set) var bytes: [UInt8] = []
    /// All of it is here.
    var isWhole = true
    private var count = 0

    /// A longer one is not kept: it would be in the way of others, and a 401 says what it has to say in less.
    static let limit = 64 * 1024
    /// Past this, a connection is not worth reading on for.
    private static let mostRead = 1 << 20

    /// - Returns: whether it is worth reading on.
    mutating func append(_ body: Span<UInt8>) -> Bool {
        count += body.count
        if count > Self.limit {
            isWhole = false
            bytes = []
        } else {
            for index in body.indices { bytes.append(body[index]) }
        }
        return count <= Self.mostRead
    }
}
