internal import Cryptography

/// One name and value of a token request's form (RFC 6749 appendix B). Both are plain text: escaping is done when the
/// request is sent.
public struct FormParameter: Sendable, Equatable {
    /// A value, and whether it is a secret.
    public enum Value: Sendable, Equatable {
        /// A value that may be shown in a log or a debugger.
        case plain(String)
        /// A value that prints as `<redacted>` and is wiped from memory when it is let go.
        case secret(Secret)
    }

    /// The parameter's name, not escaped.
    public var name: String
    /// The parameter's value, not escaped.
    public var value: Value

    /// A parameter whose value may be shown.
    public init(_ name: String, _ value: String) {
        self.name = name
        self.value = .plain(value)
    }

    /// A parameter whose value is a secret.
    public init(_ name: String, _ value: Secret) {
        self.name = name
        self.value = .secret(value)
    }
}

/// How a text is escaped. Only ASCII letters, digits and a few marks stay as they are.
enum FormEncoding {
    /// application/x-www-form-urlencoded, strict: everything but letters, digits, `-`, `.` and `_` is escaped, a
    /// space becomes `+`. RFC 6749 appendix B.
    static func form(_ bytes: Span<UInt8>, to output: inout SecretWriter) {
        escape(bytes, spaceAsPlus: true, keepTilde: false) { output.append($0) }
    }

    /// Percent-encoding with RFC 3986's unreserved set; a space becomes `%20`.
    static func percent(_ bytes: Span<UInt8>, to output: inout SecretWriter) {
        escape(bytes, spaceAsPlus: false, keepTilde: true) { output.append($0) }
    }

    /// The same for what is no secret.
    static func percent(_ bytes: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        escape(bytes.span, spaceAsPlus: false, keepTilde: true) { output.append($0) }
        return output
    }

    static func body(_ parameters: [FormParameter]) -> Secret {
        var output = SecretWriter(capacity: 1024)
        for parameter in parameters {
            if output.count > 0 { output.append(UInt8(ascii: "&")) }
            form(Array(parameter.name.utf8).span, to: &output)
            output.append(UInt8(ascii: "="))
            switch parameter.value {
            case .plain(let text): form(Array(text.utf8).span, to: &output)
            case .secret(let secret): secret.withSpan { form($0, to: &output) }
            }
        }
        return Secret(output.finish())
    }

    private static let digits = Array("0123456789ABCDEF".utf8)

    private static func escape(_ bytes: Span<UInt8>, spaceAsPlus: Bool, keepTilde: Bool, to output: (UInt8) -> Void) {
        for index in bytes.indices {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "."), UInt8(ascii: "_"):
                output(byte)
            case UInt8(ascii: "~") where keepTilde:
                output(byte)
            case UInt8(ascii: " ") where spaceAsPlus:
                output(UInt8(ascii: "+"))
            default:
                output(UInt8(ascii: "%"))
                output(digits[Int(byte >> 4)])
                output(digits[Int(byte & 0x0F)])
            }
        }
    }
}
