import WireText

/// Path and query in a normalized spelling. All characters but unreserved ones (RFC 3986, section 2.3) and the path's
/// slashes are escaped, with upper-case digits. Empty parameters are left out. The request is sent in this spelling, so
/// the signature fits whether the server uses the text unchanged, or decodes and escapes it again.
public struct SignableTarget: Sendable, Equatable {
    /// Path, which begins with `/`. Dot segments and repeated slashes stay, also in escaped form.
    public var path: [UInt8] = []
    /// Parameters as `name` or `name=value`, in the received order.
    public var parameters: [[UInt8]] = []

    /// - Parameter target: path and query, as sent by the client.
    public init(_ target: Span<UInt8>) {
        let end = target.position(of: ASCII.question)
        Self.escape(target.extracting(0..<end), isPath: true, to: &path)
        if path.first != ASCII.slash { path.insert(ASCII.slash, at: 0) }
        var start = end + 1
        while start <= target.count {
            let stop = target.position(of: UInt8(ascii: "&"), from: start)
            append(parameter: target.extracting(start..<stop))
            start = stop + 1
        }
    }

    private mutating func append(parameter: Span<UInt8>) {
        guard !parameter.isEmpty else { return }
        let equals = parameter.position(of: ASCII.equals)
        var text: [UInt8] = []
        Self.escape(parameter.extracting(0..<equals), isPath: false, to: &text)
        if equals < parameter.count {
            text.append(ASCII.equals)
            Self.escape(parameter.extracting((equals + 1)...), isPath: false, to: &text)
        }
        if text != [ASCII.equals] { parameters.append(text) }
    }

    public var text: [UInt8] {
        var text = path
        for (index, parameter) in parameters.enumerated() {
            text.append(index == 0 ? ASCII.question : UInt8(ascii: "&"))
            text += parameter
        }
        return text
    }

    private static func isUnreserved(_ byte: UInt8) -> Bool {
        ASCII.isAlphanumeric(byte) || byte == ASCII.hyphen || byte == ASCII.dot || byte == ASCII.underscore
            || byte == ASCII.tilde
    }

    private static func escape(_ bytes: Span<UInt8>, isPath: Bool, to output: inout [UInt8]) {
        var index = 0
        while index < bytes.count {
            var byte = bytes[index]
            var isEscaped = false
            if byte == ASCII.percent, index + 2 < bytes.count, let high = ASCII.hexValue(bytes[index + 1]),
                let low = ASCII.hexValue(bytes[index + 2])
            {
                byte = high << 4 | low
                isEscaped = true
                index += 2
            } else if byte == ASCII.plus, !isPath {
                // Most servers read a plus in a query as a space.
                byte = ASCII.space
            }
            index += 1
            // An escaped dot in a path was escaped on purpose, so it stays escaped.
            let stays = isPath && isEscaped ? isUnreserved(byte) && byte != ASCII.dot : isUnreserved(byte)
            if stays || isPath && !isEscaped && byte == ASCII.slash {
                output.append(byte)
            } else {
                output.append(ASCII.percent)
                output.append(ASCII.hexDigitUppercased(byte >> 4))
                output.append(ASCII.hexDigitUppercased(byte & 0x0F))
            }
        }
    }
}
