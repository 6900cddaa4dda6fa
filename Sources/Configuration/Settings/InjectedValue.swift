/// Rules for injected secrets, checked at the start and after each reading of a secret.
public enum InjectedValue {
    /// Returns the fault of a secret, to follow the source's name; `nil` for no fault. Never quotes the secret.
    public typealias Rule = @Sendable (_ bytes: [UInt8]) -> String?

    /// Refuses an empty secret, and bytes that a receiver could drop, or take for a field's end (RFC 9110 section 5.5).
    public static let fieldValue: Rule = { bytes in
        if bytes.isEmpty { return "it is empty: put the secret into it" }
        if let fault = control(bytes) { return fault }
        if bytes.first == 0x20 || bytes.last == 0x20 { return "it begins or ends with a space: remove it" }
        return nil
    }

    /// Visible ASCII without commas, which separate the parts of an AWS signature's field.
    public static let word: Rule = { bytes in
        if bytes.isEmpty { return "it is empty: write a value" }
        guard !bytes.allSatisfy({ (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }) else { return nil }
        return SecretForm(bytes).map { "it \($0)" } ?? "it may hold only visible ASCII characters, and no comma"
    }

    /// Refuses control characters, and a colon, which would end the user name (RFC 7617, section 2).
    public static let username: Rule = { bytes in
        bytes.contains(UInt8(ascii: ":")) ? "it holds a colon, which a user name can't have: remove it" : control(bytes)
    }

    /// Refuses control characters (RFC 7617, section 2).
    public static let password: Rule = { control($0) }

    private static func control(_ bytes: [UInt8]) -> String? {
        guard bytes.contains(where: { $0 < 0x20 || $0 == 0x7F }) else { return nil }
        return SecretForm(bytes).map { "it \($0)" }
            ?? "it holds a control character, such as a line break: write the value on one line"
    }
}
