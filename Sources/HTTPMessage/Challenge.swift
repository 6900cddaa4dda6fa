import WireText

/// One challenge of WWW-Authenticate or Proxy-Authenticate (RFC 9110 11.3, 11.6.1).
public struct Challenge: Sendable, Equatable {
    public struct Parameter: Sendable, Equatable {
        /// Lower case.
        public var name: String
        /// Value without quotes and escapes, with invalid UTF-8 replaced.
        public var value: String

        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// Lower case.
    public var scheme: String
    /// Parameters in order, each name once.
    public var parameters: [Parameter]
    /// The token68 that replaces the parameters in schemes such as Negotiate.
    public var token68: String?

    public init(scheme: String, parameters: [Parameter] = [], token68: String? = nil) {
        self.scheme = scheme
        self.parameters = parameters
        self.token68 = token68
    }

    /// The value of a parameter; `name` in lower case.
    public func value(of name: String) -> String? { parameters.first { $0.name == name }?.value }

    /// Schemes of access tokens, in the spelling of `scheme`.
    public static let bearer = "bearer"
    public static let dpop = "dpop"

    /// Errors of the token's scheme that do not blame the token (RFC 6750 section 3.1, RFC 9470 section 3, RFC 9449).
    private static let otherErrors: Set<String> = [
        "invalid_request", "insufficient_scope", "insufficient_user_authentication", "use_dpop_nonce",
        "invalid_dpop_proof",
    ]

    /// Schemes by which a program can authenticate itself (IANA's registry, and two common ones). A challenge of such a
    /// scheme alone does not blame the token.
    private static let otherSchemes: Set<String> = [
        bearer, dpop, "basic", "digest", "negotiate", "ntlm", "kerberos", "hoba", "mutual", "scram-sha-1",
        "scram-sha-256", "vapid", "privatetoken", "concealed", "gnap", "aws4-hmac-sha256", "hawk",
    ]

    /// Whether a 401 with these fields rejects the token (RFC 6750, section 3.1; RFC 9449, section 7.1). It does, unless
    /// well-formed challenges say something else: an error of the token's scheme that does not blame the token, or only
    /// other schemes that a program can use. Servers write many challenges that break the grammar.
    public static func rejectsToken(_ values: [[UInt8]], of scheme: String = bearer) -> Bool {
        let (challenges, isWhole) = readable(values)
        let own = challenges.filter { $0.scheme == scheme }
        guard own.isEmpty else {
            return own.contains { challenge in challenge.value(of: "error").map { !otherErrors.contains($0) } ?? true }
        }
        return !isWhole || challenges.isEmpty || !challenges.allSatisfy { otherSchemes.contains($0.scheme) }
    }

    /// Whether a challenge of that scheme has the error `invalid_token`.
    public static func hasInvalidTokenError(_ values: [[UInt8]], of scheme: String = bearer) -> Bool {
        readable(values).challenges.contains { $0.scheme == scheme && $0.value(of: "error") == "invalid_token" }
    }

    /// Returns the challenges and parameters that can be read, without those that break the grammar or come twice.
    /// - Returns: also whether nothing was left out.
    public static func readable(_ values: [[UInt8]]) -> (challenges: [Challenge], isWhole: Bool) {
        if let challenges = parse(values) { return (challenges, true) }
        var challenges: [Challenge] = []
        for value in values where value.count <= maxBytes {
            var parser = ChallengeParser(bytes: value, isLenient: true)
            challenges += parser.parse() ?? []
        }
        return (challenges, false)
    }

    /// Whether a DPoP challenge has the error `use_dpop_nonce` (RFC 9449, section 9).
    public static func wantNonce(_ values: [[UInt8]]) -> Bool {
        (parse(values) ?? []).contains { $0.scheme == dpop && $0.value(of: "error") == "use_dpop_nonce" }
    }

    /// Returns a field's value without the parameters of this name; `nil` if the value is malformed.
    public static func removing(_ name: String, from value: [UInt8]) -> String? {
        let text = String(decoding: value, as: UTF8.self)
        guard text.lowercased().contains(name) else { return text }
        guard var challenges = parse([value]) else { return nil }
        for index in challenges.indices { challenges[index].parameters.removeAll { $0.name == name } }
        return challenges.map(\.text).joined(separator: ", ")
    }

    /// The challenge as text, for a field's value.
    private var text: String {
        if let token68 { return "\(scheme) \(token68)" }
        let pairs = parameters.map { parameter in
            let value = parameter.value.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"")
            return "\(parameter.name)=\"\(value)\""
        }
        let name = scheme == Self.bearer ? "Bearer" : scheme == Self.dpop ? "DPoP" : scheme
        return pairs.isEmpty ? name : name + " " + pairs.joined(separator: ", ")
    }

    /// Longest value that is read.
    private static let maxBytes = 8 << 10

    /// Parses all challenges of an answer's fields, in order; a field may hold several.
    /// - Parameter values: the values of all fields of that name.
    /// - Returns: `nil` if a value breaks the grammar, or has more than 8 KiB; empty for no values.
    public static func parse(_ values: [[UInt8]]) -> [Challenge]? {
        var challenges: [Challenge] = []
        for value in values {
            guard value.count <= maxBytes else { return nil }
            var parser = ChallengeParser(bytes: value)
            guard let found = parser.parse() else { return nil }
            challenges += found
        }
        return challenges
    }
}

/// Reads one field value: `#( auth-scheme [ 1*SP ( token68 / #auth-param ) ] )`.
private struct ChallengeParser {
    let bytes: [UInt8]
    /// Whether to leave out what breaks the grammar, up to the next comma.
    var isLenient = false
    var index = 0
    var challenges: [Challenge] = []
    /// Names of the last challenge's parameters that came twice, so that no value of theirs counts.
    private var repeated: Set<String> = []
    /// Whether the next element follows a blank instead of a comma. A word there is no scheme.
    private var isContinued = false

    init(bytes: [UInt8], isLenient: Bool = false) {
        self.bytes = bytes
        self.isLenient = isLenient
    }

    mutating func parse() -> [Challenge]? {
        while true {
            while index < bytes.count, bytes[index] == ASCII.comma || ASCII.isBlank(bytes[index]) {
                if bytes[index] == ASCII.comma { isContinued = false }
                index += 1
            }
            guard index < bytes.count else { return challenges }
            let start = index
            guard takeElement() else {
                guard isLenient else { return nil }
                skipElement(from: start)
                continue
            }
        }
    }

    /// Reads a scheme with its first parameter, or a further parameter, up to the comma.
    private mutating func takeElement() -> Bool {
        guard let word = token() else { return false }
        if nextIsEquals() {
            guard takeParameter(named: word) else { return false }
        } else {
            guard !isContinued, takeScheme(word) else { return false }
        }
        let end = index
        skipBlanks()
        if index == bytes.count || bytes[index] == ASCII.comma { return true }
        // Some servers leave out the commas between parameters.
        isContinued = isLenient && index > end
        return isContinued
    }

    /// Goes on behind the next comma outside of quotes.
    private mutating func skipElement(from start: Int) {
        index = max(index, start)
        while index < bytes.count, bytes[index] != ASCII.comma {
            if bytes[index] == ASCII.quote { _ = quoted() } else { index += 1 }
        }
    }

    /// Adds a challenge of this scheme, with its token68 or its first parameter.
    private mutating func takeScheme(_ word: ArraySlice<UInt8>) -> Bool {
        challenges.append(Challenge(scheme: lowercased(word)))
        repeated = []
        guard index < bytes.count, bytes[index] == ASCII.space else { return true }
        while index < bytes.count, bytes[index] == ASCII.space { index += 1 }
        guard index < bytes.count, bytes[index] != ASCII.comma else { return true }
        if let token68 = token68() {
            challenges[challenges.count - 1].token68 = token68
            return true
        }
        guard let name = token(), nextIsEquals() else { return false }
        return takeParameter(named: name)
    }

    /// `token BWS "=" BWS ( token / quoted-string )`, from the end of the name on.
    private mutating func takeParameter(named word: ArraySlice<UInt8>) -> Bool {
        guard let last = challenges.indices.last, challenges[last].token68 == nil else { return false }
        skipBlanks()
        index += 1
        skipBlanks()
        let value = index < bytes.count && bytes[index] == ASCII.quote ? quoted() : unquoted()
        let name = lowercased(word)
        guard let value else { return false }
        guard challenges[last].value(of: name) == nil, !repeated.contains(name) else {
            challenges[last].parameters.removeAll { $0.name == name }
            repeated.insert(name)
            return isLenient
        }
        challenges[last].parameters.append(Challenge.Parameter(name: name, value: value))
        return true
    }

    /// Reads a token; leniently, all characters up to a comma or a blank, such as those of an address.
    private mutating func unquoted() -> String? {
        guard isLenient else { return token().map(string) }
        let start = index
        while index < bytes.count, bytes[index] > 0x20, bytes[index] < 0x7F, bytes[index] != ASCII.comma,
            bytes[index] != ASCII.quote
        {
            index += 1
        }
        return index > start ? string(bytes[start..<index]) : nil
    }

    private mutating func token() -> ArraySlice<UInt8>? {
        let start = index
        while index < bytes.count, ASCII.isToken(bytes[index]) { index += 1 }
        return index > start ? bytes[start..<index] : nil
    }

    /// Reads a token68 if a comma or the end follows; otherwise reads nothing.
    private mutating func token68() -> String? {
        let start = index
        var end = index
        while end < bytes.count, Self.isToken68(bytes[end]) { end += 1 }
        guard end > start else { return nil }
        while end < bytes.count, bytes[end] == ASCII.equals { end += 1 }
        var rest = end
        while rest < bytes.count, ASCII.isBlank(bytes[rest]) { rest += 1 }
        guard rest == bytes.count || bytes[rest] == ASCII.comma else { return nil }
        index = end
        return string(bytes[start..<end])
    }

    private static func isToken68(_ byte: UInt8) -> Bool {
        switch byte {
        case ASCII.hyphen, ASCII.dot, ASCII.underscore, ASCII.tilde, ASCII.slash, 0x2B: true
        default: ASCII.isAlphanumeric(byte)
        }
    }

    /// RFC 9110 5.6.4.
    private mutating func quoted() -> String? {
        var content: [UInt8] = []
        index += 1
        while index < bytes.count {
            var byte = bytes[index]
            index += 1
            if byte == ASCII.quote { return String(decoding: content, as: UTF8.self) }
            if byte == ASCII.backslash {
                guard index < bytes.count else { return nil }
                byte = bytes[index]
                index += 1
            }
            guard ASCII.isFieldValue(byte) else { return nil }
            content.append(byte)
        }
        return nil
    }

    private func nextIsEquals() -> Bool {
        var next = index
        while next < bytes.count, ASCII.isBlank(bytes[next]) { next += 1 }
        return next < bytes.count && bytes[next] == ASCII.equals
    }

    private mutating func skipBlanks() {
        while index < bytes.count, ASCII.isBlank(bytes[index]) { index += 1 }
    }

    private func string(_ slice: ArraySlice<UInt8>) -> String { String(decoding: slice, as: UTF8.self) }

    private func lowercased(_ slice: ArraySlice<UInt8>) -> String {
        String(decoding: slice.map(ASCII.lowercased), as: UTF8.self)
    }
}
