/// File names made of client names.
enum FileStoreName {
    /// A file name has 255 bytes at most, and the longest suffix, `.token.new`, has 10.
    private static let longest = 240

    /// Different for different clients, and of letters, digits, `-`, `_` and `%` only, so that no name leads out of the
    /// directory, hides, or looks like another client's file with something appended. `nil`: the name is empty or too
    /// long.
    static func file(for client: String) -> String? {
        var name = ""
        for byte in client.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                name.unicodeScalars.append(Unicode.Scalar(byte))
            default:
                let digits = String(byte, radix: 16, uppercase: true)
                name += digits.count == 1 ? "%0" + digits : "%" + digits
            }
        }
        return name.isEmpty || name.utf8.count > longest ? nil : name
    }
}
