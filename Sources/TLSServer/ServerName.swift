/// The name in a ClientHello's extension server_name (RFC 6066 section 3).
enum ServerName {
    /// - Parameter content: of the extension, as the client sent it.
    /// - Returns: the name in lower case; `nil` unless the extension holds exactly one host name of ASCII letters,
    ///   digits, `-`, `.` and `_`.
    static func parse(_ content: MessageReader) -> String? {
        var content = content
        guard var list = content.vector(2), content.isAtEnd, list.integer(1) == 0, let host = list.vector(2),
            list.isAtEnd, 1...255 ~= host.rest.count
        else { return nil }
        var name: [UInt8] = []
        for byte in host.rest {
            switch byte {
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): name.append(byte | 0x20)
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"),
                UInt8(ascii: "."), UInt8(ascii: "_"):
                name.append(byte)
            default: return nil
            }
        }
        return String(decoding: name, as: UTF8.self)
    }
}
