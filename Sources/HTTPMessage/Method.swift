/// The request methods that a proxy acts on. All others are `other` and forwarded unchanged.
public enum Method: UInt8, Sendable, Equatable, CaseIterable {
    case get, head, post, put, delete, options, trace, connect, patch, other

    /// Whether the method is idempotent (RFC 9110 9.2.2). Unknown methods are not.
    public var isIdempotent: Bool {
        switch self {
        case .get, .head, .put, .delete, .options, .trace: true
        case .post, .connect, .patch, .other: false
        }
    }

    /// Method names are case-sensitive (RFC 9110 9.1), so `get` is `other`.
    init(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) {
        guard end - start <= 7 else {
            self = .other
            return
        }
        var word: UInt64 = 0
        for index in start..<end { word = word << 8 | UInt64(bytes[index]) }
        switch word {
        case 0x47_4554: self = .get
        case 0x4845_4144: self = .head
        case 0x504F_5354: self = .post
        case 0x50_5554: self = .put
        case 0x4445_4C45_5445: self = .delete
        case 0x4F_5054_494F_4E53: self = .options
        case 0x54_5241_4345: self = .trace
        case 0x43_4F4E_4E45_4354: self = .connect
        case 0x50_4154_4348: self = .patch
        default: self = .other
        }
    }
}
