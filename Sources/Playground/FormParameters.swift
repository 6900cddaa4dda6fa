import WireText

/// The parameters of an `application/x-www-form-urlencoded` body.
struct FormParameters: Sendable {
    private let values: [String: String]

    /// `nil` when a parameter is given twice (RFC 6749, section 3.2), an escape is broken, or text is not UTF-8.
    init?(_ body: [UInt8]) {
        guard let values = FormText.fields(body) else { return nil }
        self.values = values
    }

    /// `nil` as well for an empty value, which counts as absent (RFC 6749, section 3.2).
    subscript(name: String) -> String? {
        guard let value = values[name], !value.isEmpty else { return nil }
        return value
    }
}
