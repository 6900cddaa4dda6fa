/// The name in a ClientHello's extension server_name (RFC 6066 section 3).
enum ServerName {
    /// - Parameter bytes: content of the extension, as the client sent it.
    /// - Returns: the name in lower case; `nil` unless the extension holds exactly one host name of ASCII letters,
    ///   digits, `-`, `.` and `_`.
    static func parse(_ bytes: Span<UInt8>) -> String? {
        // Length of the list, kind 0, length of the name.
        guard bytes.count > 5, bytes[2] == 0, number(bytes, at: 0) == bytes.count - 2,
            number(bytes, at: 3) == bytes.count - 5, bytes.count - 5 <= 255
        else { return nil }
        var name: [UInt8] = []
        for index in 5..<bytes.count {
            switch bytes[index] {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): name.append(bytes[index] | 0x20)
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                UInt8(ascii: "."), UInt8(ascii: "_"):
                name.append(bytes[index])
            default: return nil
            }
        }
        return String(decoding: name, as: UTF8.self)
    }

    private static func number(_ bytes: Span<UInt8>, at index: Int) -> Int {
        Int(bytes[index]) << 8 | Int(bytes[index + 1])
    }
}
