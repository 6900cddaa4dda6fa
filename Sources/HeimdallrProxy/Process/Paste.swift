/// Text that a person pastes or types.
struct Paste {
    static let endOfTransmission: UInt8 = 0x04
    private static let (backspace, delete): (UInt8, UInt8) = (0x08, 0x7F)

    let limit: Int
    private(set) var bytes: [UInt8] = []

    init(limit: Int) { self.limit = limit }

    var text: String { String(decoding: bytes, as: UTF8.self) }
    var isAtLineEnd: Bool { bytes.last == UInt8(ascii: "\n") }

    /// - Parameter isTyped: whether a backspace removes the last character.
    /// - Returns: text for the terminal.
    mutating func take(_ byte: UInt8, isTyped: Bool) -> String {
        switch byte {
        case Self.backspace where isTyped, Self.delete where isTyped:
            guard bytes.popLast() != nil else { return "" }
            return "\u{8} \u{8}"
        case UInt8(ascii: "\r"), UInt8(ascii: "\n"):
            // Stays at the end of a text that is too long, because it ends the text.
            if bytes.count > limit { bytes.removeLast() }
            bytes.append(UInt8(ascii: "\n"))
            return "\n"
        default:
            if bytes.count < limit { bytes.append(byte) } else if isAtLineEnd { bytes[bytes.count - 1] = byte }
            return (0x20...0x7E).contains(byte) ? String(UnicodeScalar(byte)) : ""
        }
    }
}
