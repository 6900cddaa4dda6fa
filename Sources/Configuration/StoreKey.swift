/// The key of `store`.
extension Section {
    /// A key that is no key is an error here, with its place, and not only when the store is opened.
    func checkStoreKey(_ source: SecretSource) {
        let text: [UInt8]
        switch source {
        case .literal(let literal): text = Array(literal.utf8)
        case .environment(let name): text = Array((diagnostics.environment[name] ?? "").utf8)
        case .file(let path):
            // That it can't be read was said when it was first looked for.
            guard let content = try? Files.read(path, limit: 64 * 1024) else { return }
            text = content
        }
        guard !StoreKey.isGood(text) else { return }
        error(
            "key",
            "this key is no key of 32 bytes, raw or base64: make one with `heimdallr-proxy keygen --output FILE`")
    }
}

enum StoreKey {
    /// 32 bytes as they are, or base64 of 32 bytes with white space around it: 43 digits and perhaps one `=`.
    static func isGood(_ text: [UInt8]) -> Bool {
        guard text.count != 32 else { return true }
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 || byte == 0x0A || byte == 0x0D }
        var digits = text[...]
        while let last = digits.last, isSpace(last) { digits.removeLast() }
        while let first = digits.first, isSpace(first) { digits.removeFirst() }
        if digits.count == 44, digits.last == UInt8(ascii: "=") { digits.removeLast() }
        guard digits.count == 43, let last = digits.last else { return false }
        // The last of 43 digits has two bits left over, which must be 0.
        return digits.allSatisfy { value($0) != nil } && (value(last) ?? 1) & 0x03 == 0
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "A")...UInt8(ascii: "Z"): digit - UInt8(ascii: "A")
        case UInt8(ascii: "a")...UInt8(ascii: "z"): digit - UInt8(ascii: "a") + 26
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0") + 52
        case UInt8(ascii: "+"), UInt8(ascii: "-"): 62
        case UInt8(ascii: "/"), UInt8(ascii: "_"): 63
        default: nil
        }
    }
}
