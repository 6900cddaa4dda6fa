internal import Cryptography
internal import WireText

extension HeimdallrHTTPResponse {
    /// Whether the answer is an error's web page that probably comes from a firewall or a gateway.
    var isPageInBetween: Bool {
        // Servers themselves send web pages with the other statuses, for a wrong secret or a wrong address.
        (402..<500).contains(status) && ![404, 408, 410, 429].contains(status)
            && content.withSpan { AnswerBody.foreignFormat(of: $0) == .webPage }
    }
}

/// The body of an answer, which is JSON (RFC 6749 section 5.1) or, at some servers, a form.
enum AnswerBody {
    /// Returns the JSON text of a body. A form becomes an object of strings; any other body stays as it is.
    static func json(of content: Secret) -> Secret {
        content.withSpan { isForm($0) ? object(ofForm: $0).map { Secret($0) } : nil } ?? content
    }

    /// Returns the reason why a body is no JSON; `nil`: no known reason.
    static func foreignFormat(of body: Span<UInt8>) -> TokenResponseError.Format? {
        let start = (0..<min(body.count, 4)).map { body[$0] }
        if start.starts(with: [0x1F, 0x8B]) { return .compressed }
        let mayBeUTF16 = start.starts(with: [0xFE, 0xFF]) || start.starts(with: [0xFF, 0xFE])
        if mayBeUTF16 || start.count > 1 && (start[0] == 0) != (start[1] == 0) { return .utf16 }
        return firstVisible(of: body) == UInt8(ascii: "<") ? .webPage : nil
    }

    /// Returns the first byte behind white space and a byte order mark.
    private static func firstVisible(of body: Span<UInt8>) -> UInt8? {
        body.indices.first { body[$0] > 0x20 && ![0xEF, 0xBB, 0xBF].contains(body[$0]) }.map { body[$0] }
    }

    /// Whether the body is a form with a token, a device's codes or an error.
    private static func isForm(_ body: Span<UInt8>) -> Bool {
        let text = body.trimmed
        guard text.indices.allSatisfy({ text[$0] > 0x20 && text[$0] < 0x7F && !"\"<>[]{}".utf8.contains(text[$0]) })
        else { return false }
        return pairs(of: text).contains { pair in
            ["access_token=", "device_code=", "error="].contains { name in
                pair.count >= name.utf8.count
                    && zip(pair, name.utf8).allSatisfy { index, byte in text[index] == byte }
            }
        }
    }

    private static func pairs(of text: Span<UInt8>) -> [Range<Int>] {
        var pairs: [Range<Int>] = []
        var start = 0
        for index in 0...text.count where index == text.count || text[index] == UInt8(ascii: "&") {
            if index > start { pairs.append(start..<index) }
            start = index + 1
        }
        return pairs
    }

    /// Returns a form as a JSON object; `nil` for a broken escape. Copies no value but into wiped memory.
    private static func object(ofForm body: Span<UInt8>) -> SecretBytes? {
        let text = body.trimmed
        var writer = SecretWriter(capacity: 2 * text.count + 16)
        for pair in pairs(of: text) {
            writer.append(UInt8(ascii: writer.count == 0 ? "{" : ","))
            let cut = pair.first { text[$0] == ASCII.equals } ?? pair.upperBound
            guard write(text.extracting(pair.lowerBound..<cut), to: &writer) else { return nil }
            writer.append(UInt8(ascii: ":"))
            guard write(text.extracting(min(cut + 1, pair.upperBound)..<pair.upperBound), to: &writer) else {
                return nil
            }
        }
        writer.append(UInt8(ascii: "}"))
        return writer.finish()
    }

    /// Writes a name or a value as a JSON string.
    /// - Returns: `false` for a broken escape.
    private static func write(_ encoded: Span<UInt8>, to writer: inout SecretWriter) -> Bool {
        writer.append(ASCII.quote)
        var index = 0
        while index < encoded.count {
            var byte = encoded[index]
            if byte == UInt8(ascii: "%") {
                guard index + 2 < encoded.count, let high = ASCII.hexValue(encoded[index + 1]),
                    let low = ASCII.hexValue(encoded[index + 2])
                else { return false }
                byte = high << 4 | low
                index += 2
            } else if byte == UInt8(ascii: "+") {
                byte = ASCII.space
            }
            index += 1
            if byte < 0x20 {
                writer.append("\\u00")
                writer.append(ASCII.hexDigit(byte >> 4))
                writer.append(ASCII.hexDigit(byte & 0x0F))
            } else {
                if byte == ASCII.quote || byte == ASCII.backslash { writer.append(ASCII.backslash) }
                writer.append(byte)
            }
        }
        writer.append(ASCII.quote)
        return true
    }
}
