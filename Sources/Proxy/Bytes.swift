import HTTPMessage
import WireText

extension [Field] {
    /// Returns the value of the only matching field; `nil` for none, and for several, which may contradict each other.
    @inline(__always) func value(ofOnly fits: (Field) -> Bool) -> ByteRange? {
        var found: ByteRange?
        for field in self where fits(field) {
            guard found == nil else { return nil }
            found = field.value
        }
        return found
    }
}

extension Span where Element == UInt8 {
    /// Whether these bytes are this field name, in any case and with underscores for hyphens. CGI-like servers do not
    /// distinguish `X_Api_Key` from `X-Api-Key`.
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
