import WireText

/// IPv6 addresses as text: reads any form of RFC 4291 2.2, writes the form of RFC 5952. Zones are not accepted.
enum IPv6Text {
    static func parse(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> (high: UInt64, low: UInt64)? {
        var high: UInt64 = 0
        var low: UInt64 = 0
        var count = 0  // groups read
        var gap = -1  // groups before "::"
        var tailHigh: UInt64 = 0
        var tailLow: UInt64 = 0
        var index = start

        func shiftIn(_ group: UInt64, _ high: inout UInt64, _ low: inout UInt64) {
            high = high << 16 | low >> 48
            low = low << 16 | group
        }

        guard end - start >= 2, end - start <= 45 else { return nil }
        if bytes[index] == ASCII.colon {
            guard bytes[index + 1] == ASCII.colon else { return nil }
            gap = 0
            index += 2
        }
        while index < end {
            var digits = 0
            var group: UInt64 = 0
            let groupStart = index
            while index < end, digits < 5, let digit = ASCII.hexValue(bytes[index]) {
                group = group << 4 | UInt64(digit)
                digits += 1
                index += 1
            }
            if index < end, bytes[index] == ASCII.dot {
                guard count <= 6, let address = AuthorityParts.ipv4(bytes, groupStart, end) else { return nil }
                if gap < 0 {
                    shiftIn(UInt64(address >> 16), &high, &low)
                    shiftIn(UInt64(address & 0xFFFF), &high, &low)
                } else {
                    shiftIn(UInt64(address >> 16), &tailHigh, &tailLow)
                    shiftIn(UInt64(address & 0xFFFF), &tailHigh, &tailLow)
                }
                count += 2
                index = end
                break
            }
            guard digits >= 1, digits <= 4, count < 8 else { return nil }
            if gap < 0 { shiftIn(group, &high, &low) } else { shiftIn(group, &tailHigh, &tailLow) }
            count += 1
            guard index < end else { break }
            guard bytes[index] == ASCII.colon, index + 1 < end else { return nil }
            index += 1
            if bytes[index] == ASCII.colon {
                guard gap < 0 else { return nil }
                gap = count
                index += 1
            }
        }
        guard gap >= 0 else { return count == 8 ? (high, low) : nil }
        guard count < 8 else { return nil }
        for _ in gap..<8 { shiftIn(0, &high, &low) }
        return (high | tailHigh, low | tailLow)
    }

    /// RFC 5952: lower case, no leading zeros, the first longest run of two or more zero groups as `::`, IPv4-mapped
    /// addresses with a dotted quad. No brackets.
    static func format(high: UInt64, low: UInt64) -> String {
        if high == 0, low >> 32 == 0xFFFF { return "::ffff:" + IPv4Text.format(UInt32(truncatingIfNeeded: low)) }
        let groups = (0..<8).map { UInt16(truncatingIfNeeded: ($0 < 4 ? high : low) >> UInt64((3 - $0 % 4) * 16)) }
        var best = 0..<0
        var index = 0
        while index < 8 {
            var runEnd = index
            while runEnd < 8, groups[runEnd] == 0 { runEnd += 1 }
            if runEnd - index > max(best.count, 1) { best = index..<runEnd }
            index = max(runEnd, index + 1)
        }
        func joined(_ part: ArraySlice<UInt16>) -> String { part.map { String($0, radix: 16) }.joined(separator: ":") }
        guard !best.isEmpty else { return joined(groups[...]) }
        return joined(groups[..<best.lowerBound]) + "::" + joined(groups[best.upperBound...])
    }
}

enum IPv4Text {
    static func format(_ address: UInt32) -> String {
        "\(address >> 24).\(address >> 16 & 0xFF).\(address >> 8 & 0xFF).\(address & 0xFF)"
    }
}
