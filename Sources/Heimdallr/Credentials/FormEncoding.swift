internal import Cryptography
internal import WireText

/// A parameter of a token request's form (RFC 6749 appendix B). It is escaped only when the request is sent.
public struct FormParameter: Sendable, Equatable {
    /// A value, and whether it is a secret.
    public enum Value: Sendable, Equatable {
        /// A value that may be shown in a log or a debugger.
        case plain(String)
        /// A value that prints as `<redacted>` and is wiped from memory with its last copy.
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

/// The form of a request to a token endpoint, RFC 6749 appendix B.
enum FormEncoding {
    static func body(_ parameters: [FormParameter]) -> Secret {
        var output = SecretWriter(capacity: 1024)
        for parameter in parameters {
            if output.count > 0 { output.append(UInt8(ascii: "&")) }
            append(Array(parameter.name.utf8).span, to: &output)
            output.append(UInt8(ascii: "="))
            switch parameter.value {
            case .plain(let text): append(Array(text.utf8).span, to: &output)
            case .secret(let secret): secret.withSpan { append($0, to: &output) }
            }
        }
        return Secret(output.finish())
    }

    private static func append(_ bytes: Span<UInt8>, to output: inout SecretWriter) {
        PercentEncoding.form.encode(bytes) { output.append($0) }
    }
}
