import HTTPMessage

extension Span where Element == UInt8 {
    func elementsEqual(_ other: [UInt8]) -> Bool {
        guard count == other.count else { return false }
        for index in indices where self[index] != other[index] { return false }
        return true
    }

    /// Compares with a lower-case name.
    func equalsIgnoringCase(_ lowercased: [UInt8]) -> Bool {
        guard count == lowercased.count else { return false }
        for index in indices {
            let byte = self[index]
            let lower = byte >= 65 && byte <= 90 ? byte | 0x20 : byte
            guard lower == lowercased[index] else { return false }
        }
        return true
    }

    /// Whether it names this field, in any case and with underscores for hyphens: CGI-like servers can't tell them
    /// apart, so that `X_Api_Key` could stand in for `X-Api-Key`.
    func namesField(_ lowercased: [UInt8]) -> Bool {
        guard count == lowercased.count else { return false }
        for index in indices {
            let byte = self[index]
            let lower = byte >= 65 && byte <= 90 ? byte | 0x20 : byte
            guard lower == lowercased[index] || isDash(lower) && isDash(lowercased[index]) else { return false }
        }
        return true
    }

    private func isDash(_ byte: UInt8) -> Bool { byte == UInt8(ascii: "-") || byte == UInt8(ascii: "_") }

    subscript(_ range: ByteRange) -> Span<UInt8> {
        @_lifetime(copy self)
        get { extracting(range.range) }
    }

    var text: String {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count)
        for index in indices { bytes.append(self[index]) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
