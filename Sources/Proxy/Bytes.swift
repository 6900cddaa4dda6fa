import HTTPMessage
import Reactor
import WireText

extension Span where Element == UInt8 {
    /// Whether it names this field, in any case and with underscores for hyphens. CGI-like servers do not distinguish
    /// `X_Api_Key` from `X-Api-Key`.
    func namesField(_ lowercased: [UInt8]) -> Bool {
        guard count == lowercased.count else { return false }
        for index in indices {
            let lower = ASCII.lowercased(self[index])
            guard lower == lowercased[index] || isDash(lower) && isDash(lowercased[index]) else { return false }
        }
        return true
    }

    func starts(with prefix: [UInt8]) -> Bool {
        guard count >= prefix.count else { return false }
        for index in prefix.indices where self[index] != prefix[index] { return false }
        return true
    }

    private func isDash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") }

    subscript(_ range: ByteRange) -> Span<UInt8> {
        @_lifetime(copy self)
        get { extracting(range.range) }
    }
}

extension ByteBuffer {
    @inline(__always) mutating func append(field name: Span<UInt8>, _ value: Span<UInt8>) {
        append(name)
        append(": ")
        append(value)
        append("\r\n")
    }

    /// - Parameter start: its name and ": ".
    mutating func append(line start: StaticString, _ value: [UInt8]) {
        append(start)
        append(value)
        append("\r\n")
    }

    /// Appends the last chunk of a body, with its trailers (RFC 9112, section 7.1).
    mutating func append(lastChunk trailers: [(name: [UInt8], value: [UInt8])]) {
        append("0\r\n")
        for (name, value) in trailers { append(field: name.span, value.span) }
        append("\r\n")
    }
}
