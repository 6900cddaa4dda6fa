import WireText

/// Client authentication of a request (RFC 6749, section 2.3.1).
enum PresentedCredentials: Sendable, Equatable {
    case basic(id: String, secret: String)
    case post(id: String, secret: String)
    /// No secret, or an unreadable one. `basic`: whether the request has an Authorization field.
    case none(basic: Bool)
    /// Several methods at once, which a client must not use.
    case ambiguous

    /// - Parameter authorization: the values of all Authorization fields.
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
            // The body may repeat the id of the Authorization field.
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

/// The parameters of an `application/x-www-form-urlencoded` body.
struct FormParameters: Sendable {
    private let values: [String: String]

    /// `nil` if a parameter is given twice (RFC 6749, section 3.2), an escape is broken, or text is not UTF-8.
    init?(_ body: [UInt8]) {
        guard let values = FormText.fields(body) else { return nil }
        self.values = values
    }

    /// The parameter's value. An empty value counts as absent (RFC 6749, section 3.2).
    subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

    func required(_ name: String) throws(ErrorAnswer) -> String {
        guard let value = self[name] else { throw .invalidRequest("The parameter \(name) is missing.") }
        return value
    }
}
