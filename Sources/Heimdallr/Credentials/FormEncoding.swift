/// One name and value of a token request's form.
public struct FormParameter: Sendable, Equatable {
    public enum Value: Sendable, Equatable {
        case plain(String)
        case secret(Secret)
    }

    public var name: String
    public var value: Value

    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = .plain(value)
    }

    public init(_ name: String, _ value: Secret) {
        self.name = name
        self.value = .secret(value)
    }
}

/// How a text is escaped. Only ASCII letters, digits and a few marks stay as they are.
enum FormEncoding {
    /// application/x-www-form-urlencoded, strict: everything but letters, digits, `-`, `.` and `_` is escaped, a
    /// space becomes `+`. RFC 6749 appendix B.
    static func form(_ bytes: [UInt8]) -> [UInt8] {
        escape(bytes, spaceAsPlus: true, keepTilde: false)
    }

    /// Percent-encoding with RFC 3986's unreserved set; a space becomes `%20`.
    static func percent(_ bytes: [UInt8]) -> [UInt8] {
        escape(bytes, spaceAsPlus: false, keepTilde: true)
    }

    static func body(_ parameters: [FormParameter]) -> [UInt8] {
        var output: [UInt8] = []
        for parameter in parameters {
            if !output.isEmpty { output.append(UInt8(ascii: "&")) }
            output += form(Array(parameter.name.utf8))
            output.append(UInt8(ascii: "="))
            switch parameter.value {
            case .plain(let text): output += form(Array(text.utf8))
            case .secret(let secret): output += form(secret.revealedBytes)
            }
        }
        return output
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func escape(_ bytes: [UInt8], spaceAsPlus: Bool, keepTilde: Bool) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(bytes.count)
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                output.append(byte)
            case UInt8(ascii: "~") where keepTilde:
                output.append(byte)
            case UInt8(ascii: " ") where spaceAsPlus:
                output.append(UInt8(ascii: "+"))
            default:
                output.append(UInt8(ascii: "%"))
                output.append(digits[Int(byte >> 4)])
                output.append(digits[Int(byte & 0x0F)])
            }
        }
        return output
    }
}
