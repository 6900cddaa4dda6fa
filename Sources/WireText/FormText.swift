/// The `name=value` pairs of a form or a query, separated by ampersands (application/x-www-form-urlencoded).
public enum FormText {
    /// Splits one pair at the first `=` and decodes each half once; `nil` for a half that can't be decoded.
    public static func pair<Bytes: Collection<UInt8>>(_ bytes: Bytes) -> (name: String?, value: String?) {
        let cut = bytes.firstIndex(of: ASCII.equals) ?? bytes.endIndex
        return (PercentEncoding.form.decode(bytes[..<cut]), PercentEncoding.form.decode(bytes[cut...].dropFirst()))
    }

    /// Values by name; `nil` for a broken escape, text that is not UTF-8, or a repeated name. Readers differ in which
    /// value of a repeated name counts (RFC 6749 section 3.1). Empty pairs are skipped.
    public static func fields(_ bytes: some Collection<UInt8>) -> [String: String]? {
        var fields: [String: String] = [:]
        for part in bytes.split(separator: UInt8(ascii: "&")) {
            guard case (let name?, let value?) = pair(part), fields.updateValue(value, forKey: name) == nil else {
                return nil
            }
        }
        return fields
    }
}
