internal import WireText

/// A server's account of a fault, found in the JSON shapes that servers use: RFC 6749 section 5.2, RFC 9457, and others.
struct ServerWords {
    /// The fault's code; `nil`: the body has none.
    var code: String?
    /// The fault in words.
    var detail: String?
    var uri: String?

    /// Members with a code, most specific first. Numbers are no codes: they repeat the status.
    private static let codes = ["error", "errorCode", "error_code", "code"]
    /// The same in a nested object. At the top, these have other meanings (RFC 9457 section 3.1).
    private static let nestedCodes = codes + ["status", "type"]
    /// Members with words, most specific first.
    private static let details = [
        "error_description", "errorSummary", "error_message", "errorMessage", "message", "msg", "description", "detail",
        "hint", "reason", "title", "text",
    ]
    /// Members that may hold the whole account, as an object or as the first element of an array.
    private static let nested = ["error", "errors", "errorCauses", "fault", "details"]

    /// - Parameter body: an object, or an array whose first element is one.
    init(_ body: JSONValue) { self.init(body, depth: 0) }

    private init(_ body: JSONValue, depth: Int) {
        var body = body
        if case .array(let elements) = body, let first = elements.first { body = first }
        if depth > 0, let text = Self.text(body) {
            detail = text
            return
        }
        code = Self.first(depth == 0 ? Self.codes : Self.nestedCodes, in: body)
        detail = Self.first(Self.details, in: body)
        uri = Self.first(["error_uri"], in: body)
        guard depth < 2 else { return }
        for name in Self.nested where code == nil || detail == nil {
            guard let inner = body[name], Self.text(inner) == nil else { continue }
            let words = ServerWords(inner, depth: depth + 1)
            code = code ?? words.code
            detail = detail ?? words.detail
        }
    }

    /// Phrases for a limit of the request rate, in lower case and without separators.
    private static let limits = ["toomanyrequests", "ratelimit", "throttl", "quotaexceeded", "requestlimit"]

    /// Whether the words name a limit of the request rate.
    var nameLimit: Bool {
        let text = [code, detail].compactMap { $0 }.joined(separator: " ").prefix(4096)
        let bytes = text.utf8.lazy.map { ASCII.lowercased($0) }.filter { ASCII.isAlphanumeric($0) }
        let letters = String(decoding: bytes, as: UTF8.self)
        return Self.limits.contains { letters.contains($0) }
    }

    private static func first(_ names: [String], in body: JSONValue) -> String? {
        for name in names { if let text = body[name].flatMap(text) { return text } }
        return nil
    }

    private static func text(_ value: JSONValue) -> String? {
        guard case .string(let text) = value, !text.isEmpty else { return nil }
        return text
    }
}
