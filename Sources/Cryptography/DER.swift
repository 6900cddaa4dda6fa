/// The part of the Distinguished Encoding Rules (X.690) for public keys, signatures and certificates.
enum DER {
    static let null: [UInt8] = [0x05, 0x00]
    static let yes: [UInt8] = [0x01, 0x01, 0xFF]

    static func sequence(_ content: [UInt8]) -> [UInt8] { element(0x30, content) }
    static func set(_ content: [UInt8]) -> [UInt8] { element(0x31, content) }
    static func identifier(_ content: [UInt8]) -> [UInt8] { element(0x06, content) }
    static func octets(_ content: [UInt8]) -> [UInt8] { element(0x04, content) }
    static func text(_ content: String) -> [UInt8] { element(0x0C, Array(content.utf8)) }

    /// - Parameter unused: number of unused bits at the end of the content.
    static func bits(_ content: [UInt8], unused: UInt8 = 0) -> [UInt8] { element(0x03, [unused] + content) }

    /// A non-negative integer, big-endian.
    static func integer(_ magnitude: [UInt8]) -> [UInt8] {
        let digits = Array(magnitude.drop { $0 == 0 })
        guard let first = digits.first else { return element(0x02, [0x00]) }
        return element(0x02, first >= 0x80 ? [0x00] + digits : digits)
    }

    /// An explicit context-specific tag around other elements.
    static func tagged(_ number: UInt8, _ content: [UInt8]) -> [UInt8] { element(0xA0 | number, content) }

    /// A context-specific tag that replaces the tag of a primitive element.
    static func primitive(_ number: UInt8, _ content: [UInt8]) -> [UInt8] { element(0x80 | number, content) }

    static func element(_ tag: UInt8, _ content: [UInt8]) -> [UInt8] { header(tag, count: content.count) + content }

    static func header(_ tag: UInt8, count: Int) -> [UInt8] {
        guard count >= 0x80 else { return [tag, UInt8(count)] }
        var length: [UInt8] = []
        var rest = count
        while rest > 0 {
            length.insert(UInt8(truncatingIfNeeded: rest), at: 0)
            rest >>= 8
        }
        return [tag, 0x80 | UInt8(length.count)] + length
    }
}
