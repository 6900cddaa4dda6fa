import HTTPMessage
import Heimdallr
import Reactor
import WireText

/// Puts a token or key into the query (RFC 6750, section 2.3), for servers that accept nothing better.
enum QueryInjection {
    /// Calls `body` with the raw value of each query parameter of this name; empty for a parameter without a value.
    static func forEachValue(of name: [UInt8], in target: Span<UInt8>, _ body: (Span<UInt8>) -> Void) {
        forEachParameter(target) { parameter in
            forEachPart(parameter) { part in
                guard nameEquals(part, name) else { return }
                body(part.extracting(min(part.position(of: UInt8(ascii: "=")) + 1, part.count)...))
            }
        }
    }

    /// Appends the target without the parameters that `isLeftOut` selects. The result ends with `?` or `&`, so another
    /// parameter can follow.
    static func append(
        _ target: Span<UInt8>, without isLeftOut: (Span<UInt8>) -> Bool, _ output: inout ByteBuffer
    ) {
        output.append(target.extracting(0..<target.position(of: UInt8(ascii: "?"))))
        output.append(byte: UInt8(ascii: "?"))
        forEachParameter(target) { parameter in
            var kept = 0
            forEachPart(parameter) { part in
                guard !isLeftOut(part) else { return }
                if kept > 0 { output.append(byte: UInt8(ascii: ";")) }
                output.append(part)
                kept += 1
            }
            if kept > 0 { output.append(byte: UInt8(ascii: "&")) }
        }
    }

    static func append(_ name: [UInt8], _ value: Secret, _ output: inout ByteBuffer) {
        output.append(name)
        output.append(byte: UInt8(ascii: "="))
        value.withSpan { bytes in PercentEncoding.uri.encode(bytes) { output.append(byte: $0) } }
    }

    private static func forEachParameter(_ target: Span<UInt8>, _ body: (Span<UInt8>) -> Void) {
        let query = target.position(of: UInt8(ascii: "?"))
        guard query < target.count else { return }
        var start = query + 1
        for index in start..<(target.count + 1) where index == target.count || target[index] == UInt8(ascii: "&") {
            if index > start || index < target.count { body(target.extracting(start..<index)) }
            start = index + 1
        }
    }

    /// Calls `body` with each part between semicolons. Some servers split there, too (HTML 4.01, B.2.2).
    private static func forEachPart(_ parameter: Span<UInt8>, _ body: (Span<UInt8>) -> Void) {
        var start = 0
        for index in 0..<parameter.count + 1 where index == parameter.count || parameter[index] == UInt8(ascii: ";") {
            body(parameter.extracting(start..<index))
            start = index + 1
        }
    }

    /// Whether the parameter's percent-decoded name is `name`. A server decodes names, too.
    static func nameEquals(_ parameter: Span<UInt8>, _ name: [UInt8]) -> Bool {
        var index = 0
        for expected in name {
            guard index < parameter.count else { return false }
            var byte = parameter[index]
            index += 1
            if byte == UInt8(ascii: "%"), index + 1 < parameter.count, let high = ASCII.hexValue(parameter[index]),
                let low = ASCII.hexValue(parameter[index + 1])
            {
                byte = high << 4 | low
                index += 2
            }
            guard byte == expected else { return false }
        }
        return index == parameter.count || parameter[index] == UInt8(ascii: "=")
    }
}
