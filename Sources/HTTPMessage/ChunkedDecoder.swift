import WireText

/// Decodes the chunked coding (RFC 9112 7.1), strictly.
///
/// - A size has 1 to 16 hexadecimal digits and is below 2^63. Nothing may precede it, and only extensions may follow.
/// - Extensions must follow the grammar, but without its "bad whitespace". More than 256 bytes of extensions in one
///   line, or 4 KiB in one body, are refused (CVE-2023-39326). Extensions are dropped (7.1.1).
/// - In an answer, whitespace between a size and its CRLF is skipped, because all recipients read the same size. It counts
///   as an extension.
/// - Lines end in CRLF. A bare LF or CR is refused everywhere (CVE-2025-22871).
/// - Trailers are syntax-checked like the fields of a head, with at most 32 fields and 8 KiB. Forbidden ones are
///   dropped, see `TrailerRules`.
public struct ChunkedDecoder: Sendable {
    /// Result of a call. Offsets refer to the call's `bytes`.
    public enum Step: Sendable, Equatable {
        /// All bytes were read; more must follow.
        case needMore(consumed: Int)
        /// A range of content, perhaps part of a chunk; `consumed` is its end.
        case data(ByteRange, consumed: Int)
        /// The body is complete. The bytes from `consumed` on belong to the next message.
        case end(consumed: Int)
    }

    /// Trailers that may be forwarded, with names as received. Complete after `end`.
    public private(set) var trailers: [(name: [UInt8], value: [UInt8])] = []

    public var isEnded: Bool { state == .end }

    /// Whether whitespace was skipped. The connection should not be used again.
    public private(set) var isIrregular = false

    private let ofAnswer: Bool
    private var state = State.size
    private var failure: MessageError?
    /// Bytes left of the current chunk; while its size is read, the size so far.
    private var remaining: UInt64 = 0
    private var digits = 0
    private var lineExtensionBytes = 0
    private var extensionBytes = 0
    private var trailerBytes = 0
    private var trailerCount = 0
    private var trailerLine: [UInt8] = []

    private enum State: Sendable {
        case size, sizeBlank, extensionNameStart, extensionName, extensionValueStart, extensionValue
        case extensionQuoted, extensionEscape, extensionQuotedEnd, sizeLF
        case data, dataCR, dataLF
        case trailerStart, trailerLine, trailerLF, endLF, end
    }

    /// - Parameter ofAnswer: whether the body is an answer's.
    public init(ofAnswer: Bool = false) { self.ofAnswer = ofAnswer }

    /// Prepares for the next body.
    public mutating func reset() {
        var next = ChunkedDecoder(ofAnswer: ofAnswer)
        swap(&next.trailers, &trailers)
        swap(&next.trailerLine, &trailerLine)
        next.trailers.removeAll(keepingCapacity: true)
        next.trailerLine.removeAll(keepingCapacity: true)
        self = next
    }

    /// Continues decoding. Before the next call, the caller may drop the bytes up to the step's `consumed`.
    /// - Parameter from: offset in `bytes` to continue at; not beyond its end.
    /// - Throws: 400 or 431; every later call throws the same until `reset()`.
    public mutating func next(_ bytes: Span<UInt8>, from: Int) throws(MessageError) -> Step {
        if let failure { throw failure }
        do {
            return try advance(bytes, from)
        } catch {
            failure = error
            throw error
        }
    }

    private mutating func advance(_ bytes: Span<UInt8>, _ from: Int) throws(MessageError) -> Step {
        var index = from
        if state == .end { return .end(consumed: index) }
        while index < bytes.count {
            let byte = bytes[index]
            switch state {
            case .data:
                let length = min(UInt64(bytes.count - index), remaining)
                remaining -= length
                if remaining == 0 { state = .dataCR }
                let end = index + Int(length)
                return .data(ByteRange(index, end), consumed: end)
            case .dataCR:
                guard byte == ASCII.cr else { throw Self.sizeMismatch }
                state = .dataLF
            case .dataLF:
                guard byte == ASCII.lf else { throw Self.sizeMismatch }
                startSize()
            case .size: try readSize(byte)
            case .sizeBlank: try readSizeBlank(byte)
            case .sizeLF:
                guard byte == ASCII.lf else { throw Self.badLineEnd }
                state = remaining == 0 ? .trailerStart : .data
            case .trailerStart, .trailerLine, .trailerLF: try readTrailer(byte)
            case .endLF:
                guard byte == ASCII.lf else { throw Self.badLineEnd }
                state = .end
                return .end(consumed: index + 1)
            case .end: return .end(consumed: index)
            default: try readExtension(byte)
            }
            index += 1
        }
        return .needMore(consumed: index)
    }

    // MARK: Size line

    private mutating func startSize() {
        state = .size
        remaining = 0
        digits = 0
        lineExtensionBytes = 0
    }

    private mutating func readSize(_ byte: UInt8) throws(MessageError) {
        if let value = ASCII.hexValue(byte) {
            digits += 1
            guard digits <= 16, remaining >> 59 == 0 else { throw MessageError("A chunk size is too large.") }
            remaining = remaining << 4 | UInt64(value)
            return
        }
        guard digits > 0 else { throw Self.badSize(byte) }
        switch byte {
        case ASCII.cr: state = .sizeLF
        case ASCII.space where ofAnswer, ASCII.tab where ofAnswer:
            state = .sizeBlank
            try readSizeBlank(byte)
        case ASCII.semicolon:
            state = .extensionNameStart
            try countExtensionByte()
        case ASCII.lf: throw Self.badLineEnd
        default: throw Self.badSize(byte)
        }
    }

    private mutating func readSizeBlank(_ byte: UInt8) throws(MessageError) {
        isIrregular = true
        if byte == ASCII.cr { return state = .sizeLF }
        guard ASCII.isBlank(byte) else { throw Self.badSize(byte) }
        try countExtensionByte()
    }

    private mutating func countExtensionByte() throws(MessageError) {
        lineExtensionBytes += 1
        extensionBytes += 1
        guard lineExtensionBytes <= 256, extensionBytes <= 4096 else {
            throw MessageError("The chunk extensions are longer than 256 bytes in a line or 4 KiB in the body.")
        }
    }

    /// `*( ";" token [ "=" ( token / quoted-string ) ] )`
    private mutating func readExtension(_ byte: UInt8) throws(MessageError) {
        try countExtensionByte()
        switch state {
        case .extensionNameStart:
            guard ASCII.isToken(byte) else { throw Self.badExtension(byte) }
            state = .extensionName
        case .extensionName where byte == ASCII.equals: state = .extensionValueStart
        case .extensionValueStart where byte == ASCII.quote: state = .extensionQuoted
        case .extensionValueStart:
            guard ASCII.isToken(byte) else { throw Self.badExtension(byte) }
            state = .extensionValue
        case .extensionName, .extensionValue:
            if !ASCII.isToken(byte) { try endExtension(byte) }
        case .extensionQuoted:
            switch byte {
            case ASCII.quote: state = .extensionQuotedEnd
            case ASCII.backslash: state = .extensionEscape
            default: guard ASCII.isFieldValue(byte) else { throw Self.badExtension(byte) }
            }
        case .extensionEscape:
            guard ASCII.isFieldValue(byte) else { throw Self.badExtension(byte) }
            state = .extensionQuoted
        default: try endExtension(byte)
        }
    }

    private mutating func endExtension(_ byte: UInt8) throws(MessageError) {
        switch byte {
        case ASCII.semicolon: state = .extensionNameStart
        case ASCII.cr: state = .sizeLF
        default: throw Self.badExtension(byte)
        }
    }

    private static func badSize(_ byte: UInt8) -> MessageError {
        MessageError("A chunk size is not a plain hexadecimal number: it has the byte \(FieldLine.hex(byte)).")
    }
    private static let badLineEnd = MessageError("A line of the chunked body doesn't end in CRLF.")
    private static let sizeMismatch = MessageError(
        "A chunk is not followed by CRLF: its size and its bytes don't agree.")

    private static func badExtension(_ byte: UInt8) -> MessageError {
        byte == ASCII.lf
            ? badLineEnd : MessageError("A chunk extension is malformed: it has the byte \(FieldLine.hex(byte)).")
    }

    // MARK: Trailers

    private mutating func readTrailer(_ byte: UInt8) throws(MessageError) {
        trailerBytes += 1
        guard trailerBytes <= TrailerRules.maxBytes else {
            throw MessageError(status: 431, detail: "The trailers are larger than \(TrailerRules.maxBytes >> 10) KiB.")
        }
        switch state {
        case .trailerStart where byte == ASCII.cr: state = .endLF
        case .trailerLF:
            guard byte == ASCII.lf else { throw FieldLine.valueError(ASCII.cr) }
            try takeTrailer()
            state = .trailerStart
        default:
            guard byte != ASCII.lf else { throw FieldLine.valueError(ASCII.lf) }
            if byte == ASCII.cr {
                state = .trailerLF
            } else {
                trailerLine.append(byte)
                state = .trailerLine
            }
        }
    }

    private mutating func takeTrailer() throws(MessageError) {
        trailerCount += 1
        guard trailerCount <= TrailerRules.maxFields else {
            throw MessageError(status: 431, detail: "There are more than \(TrailerRules.maxFields) trailers.")
        }
        let (name, value) = try FieldLine.split(trailerLine.span, 0, trailerLine.count)
        if !TrailerRules.isForbidden(name, in: trailerLine.span) {
            trailers.append((Array(trailerLine[name.range]), Array(trailerLine[value.range])))
        }
        trailerLine.removeAll(keepingCapacity: true)
    }
}
