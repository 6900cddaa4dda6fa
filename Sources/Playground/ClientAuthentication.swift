import WireText

/// How a request says which OAuth client it comes from (RFC 6749, section 2.3.1).
enum ClientAuthentication: Sendable, Equatable {
    case basic(id: String, secret: String)
    case post(id: String, secret: String)
    /// No secret, or one that can't be read.
    case none(basic: Bool)
    /// More than one method at once, which a client must not do.
    case ambiguous

    /// - Parameters:
    ///   - authorization: the values of all Authorization fields.
    init(authorization: [String], form: FormParameters) {
        let posted = form["client_secret"]
        guard authorization.count <= 1, authorization.isEmpty || posted == nil else {
            self = .ambiguous
            return
        }
        if let value = authorization.first {
            guard let (id, secret) = Self.basic(value) else {
                self = .none(basic: true)
                return
            }
            // The id may be repeated in the body, if it is the same.
            self = form["client_id"].map { $0 == id } ?? true ? .basic(id: id, secret: secret) : .ambiguous
        } else if let id = form["client_id"], let posted {
            self = .post(id: id, secret: posted)
        } else {
            self = .none(basic: false)
        }
    }

    private static func basic(_ value: String) -> (id: String, secret: String)? {
        let parts = value.split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "basic",
            let pair = Base64.decode(Array(parts[1].utf8), as: .padded)
        else { return nil }
        let halves = pair.split(separator: UInt8(ascii: ":"), maxSplits: 1, omittingEmptySubsequences: false)
        guard halves.count == 2, let id = PercentEncoding.form.decode(halves[0]),
            let secret = PercentEncoding.form.decode(halves[1])
        else { return nil }
        return (id, secret)
    }
}
