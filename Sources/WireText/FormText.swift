/// What a form or a query says: `name=value` pairs between ampersands (application/x-www-form-urlencoded).
public enum FormText {
    /// One pair, split at the first `=`, each half decoded once; half a pair that can't be decoded is `nil`.
    public static func pair<Bytes: Collection<UInt8>>(_ bytes: Bytes) -> (name: String?, value: String?) {
        let cut = bytes.firstIndex(of: ASCII.equals) ?? bytes.endIndex
        return (PercentEncoding.form.decode(bytes[..<cut]), PercentEncoding.form.decode(bytes[cut...].dropFirst()))
    }

    /// By name. `nil` when a name stands there twice, since readers differ in which of them counts (RFC 6749 section
    /// 3.1); when an escape is broken; and when text is not UTF-8. Empty pairs are passed over.
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
