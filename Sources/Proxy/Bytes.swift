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
    func starts(with prefix: [UInt8]) -> Bool {
        guard count >= prefix.count else { return false }
        for index in prefix.indices where self[index] != prefix[index] { return false }
        return true
    }

    subscript(_ range: ByteRange) -> Span<UInt8> {
        @_lifetime(copy self)
        get { extracting(range.range) }
    }
}
