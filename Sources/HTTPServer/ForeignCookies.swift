import WireText

/// Cookies that other servers of the same host have set. All ports of a host share their cookies (RFC 6265, section
/// 8.5), and a browser stores up to 180 of 4 KiB for a host.
enum ForeignCookies {
    /// Limit of the bytes removed in one turn of the loop. The time limit of a head limits the turns.
    static let mostBytes = 1 << 20

    /// Returns the beginning of a request, and what follows its head, without foreign cookies; `nil` if there are none.
    ///
    /// A cookie whose end has not arrived stays. So does one with a control character, for the parser to refuse.
    /// - Parameter own: beginning of the names of the server's own cookies.
    static func removed(from bytes: Span<UInt8>, except own: [UInt8]) -> [UInt8]? {
        var rest: [UInt8] = []
        var start = 0
        while start < bytes.count {
            let end = endOfLine(bytes, from: start)
            // The head's last line is empty.
            if end == start { break }
            if start > 0, isCookies(bytes, start) {
                append(cookies: bytes, start..<end, to: &rest, except: own)
            } else {
                append(bytes, start..<end, to: &rest)
            }
            start = min(end + 2, bytes.count)
            append(bytes, end..<start, to: &rest)
        }
        append(bytes, start..<bytes.count, to: &rest)
        return rest.count < bytes.count ? rest : nil
    }

    private static let name = Array("cookie:".utf8)

    private static func isCookies(_ bytes: Span<UInt8>, _ start: Int) -> Bool {
        guard bytes.count - start >= name.count else { return false }
        return name.indices.allSatisfy { ASCII.lowercased(bytes[start + $0]) == name[$0] }
    }

    /// Returns the position of the line's CRLF; the end of the bytes if it has not arrived.
    private static func endOfLine(_ bytes: Span<UInt8>, from start: Int) -> Int {
        var index = start
        while index < bytes.count {
            if bytes[index] == ASCII.cr, index + 1 == bytes.count || bytes[index + 1] == ASCII.lf { return index }
            index += 1
        }
        return index
    }

    private static func append(
        cookies bytes: Span<UInt8>, _ line: Range<Int>, to rest: inout [UInt8], except own: [UInt8]
    ) {
        append(bytes, line.lowerBound..<line.lowerBound + name.count, to: &rest)
        var start = line.lowerBound + name.count
        while start < line.upperBound {
            var (end, isPlain) = (start, true)
            while end < line.upperBound, bytes[end] != UInt8(ascii: ";") {
                isPlain = isPlain && (bytes[end] >= 0x20 && bytes[end] != 0x7F || bytes[end] == ASCII.tab)
                end += 1
            }
            let isWhole = end < line.upperBound || line.upperBound + 1 < bytes.count
            let next = min(end + 1, line.upperBound)
            if !isPlain || !isWhole || isOwn(bytes, start..<end, own) { append(bytes, start..<next, to: &rest) }
            start = next
        }
    }

    private static func isOwn(_ bytes: Span<UInt8>, _ cookie: Range<Int>, _ own: [UInt8]) -> Bool {
        var start = cookie.lowerBound
        while start < cookie.upperBound, bytes[start] == ASCII.space { start += 1 }
        guard cookie.upperBound - start >= own.count else { return false }
        return own.indices.allSatisfy { bytes[start + $0] == own[$0] }
    }

    private static func append(_ bytes: Span<UInt8>, _ range: Range<Int>, to rest: inout [UInt8]) {
        for index in range { rest.append(bytes[index]) }
    }
}
