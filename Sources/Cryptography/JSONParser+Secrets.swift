import WireText

extension JSONParser.Member {
    /// Decodes a string's text without leaving a copy; `nil` for any other value.
    /// - Parameter json: bytes of the parsed object.
    public func secretBytes(in json: Span<UInt8>) -> SecretBytes? {
        guard case .string(let range) = value else { return nil }
        var writer = SecretWriter(capacity: range.count)
        JSONParser.decode(string: range, in: json) { writer.append($0) }
        return writer.finish()
    }
}
