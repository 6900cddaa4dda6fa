import WireText

/// Pieces of a request line (RFC 9112 section 3) and the errors in it.
enum RequestLine {
    /// Length of `HTTP/1.1` and the CR after it.
    static let versionLength = 9

    /// Method of HTTP/2's connection preface. No HTTP/1.1 request may use it (RFC 9113 11.6).
    static let preface = [UInt8]("PRI".utf8)

    static func methodError(_ byte: UInt8) -> MessageError {
        switch byte {
        case ASCII.space, ASCII.tab: MessageError("The request line begins with whitespace, or has it in the method.")
        case ASCII.lf: MessageError("A line ends in a bare LF; lines end in CRLF.")
        case ASCII.cr: MessageError("The request line is missing or has no target.")
        case 0x16: MessageError("This is TLS; the proxy expects plain HTTP here.")
        default: MessageError("The method has a character that methods can't have.")
        }
    }

    /// Throws the error of a byte that fits no target; accepts a backslash in a query.
    static func checkUnusualTargetByte(_ byte: UInt8, isInQuery: Bool) throws(MessageError) {
        switch byte {
        case ASCII.backslash:
            guard isInQuery else { throw MessageError("There is a backslash in the target; write %5C.") }
        case ASCII.hash: throw MessageError("The target has a fragment; it must not be sent.")
        case ASCII.space: throw MessageError("There is more than one space in front of the target.")
        case ASCII.cr, ASCII.lf: throw MessageError("The request line has no version.")
        case 0x80...: throw MessageError("The target has a byte beyond ASCII; percent-encode it.")
        default: throw MessageError("The target has a control character.")
        }
    }

    /// Reads `HTTP/1.1` or `HTTP/1.0` and the CR after it, up to `end`. The first wrong byte decides the error.
    /// - Returns: `nil` if there are fewer than `versionLength` bytes.
    static func version(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) throws(MessageError) -> HTTPVersion? {
        var index = start
        while index < end {
            let byte = bytes[index]
            let fits =
                switch index - start {
                case 0: byte == 0x48
                case 1, 2: byte == 0x54
                case 3: byte == 0x50
                case 4: byte == ASCII.slash
                case 6: byte == ASCII.dot
                case 8: byte == ASCII.cr
                default: ASCII.isDigit(byte)
                }
            guard fits else {
                throw byte == ASCII.lf
                    ? MessageError("A line ends in a bare LF; lines end in CRLF.")
                    : MessageError("The request line is not METHOD TARGET HTTP/1.1; in TARGET a space is %20.")
            }
            index += 1
        }
        guard end - start == versionLength else { return nil }
        switch (bytes[start + 5], bytes[start + 7]) {
        case (0x31, 0x31): return .http11
        case (0x31, 0x30): return .http10
        default: throw MessageError(status: 505, detail: "Only HTTP/1.1 and HTTP/1.0 are accepted here.")
        }
    }
}

extension RequestHead {
    /// State of the parser between two calls.
    struct Cursor: Sendable {
        var state = State.start
        var position = 0
        /// Start of the current element.
        var mark = 0
        var nameEnd = 0
        var valueStart = 0
        var hasQuery = false
        var hasHost = false
        var hasContinue = false
        var failure: MessageError?
    }

    /// The element that the byte at `Cursor.position` belongs to.
    enum State: UInt8, Sendable {
        case start, startLF, method, target, version, requestLineLF, fieldStart, name, space, value, valueLF, endLF
        case complete

        var isInRequestLine: Bool { rawValue <= State.requestLineLF.rawValue }
    }
}
