/// Answer of a `TokenEndpoint` to one request.
public struct TokenEndpointAnswer: Sendable {
    public enum Manner: Sendable {
        /// A proper response.
        case whole
        /// The body is sent byte by byte, with this pause after each byte.
        case drip(Duration)
        /// The head promises the whole body, but the connection ends after this number of bytes.
        case cut(after: Int)
        /// The head and this number of bytes, all `x`.
        case flood(Int)
        /// Nothing is sent, and the connection stays open until the client leaves.
        case silence
        /// The connection ends without an answer.
        case close
        /// The connection is reset without an answer.
        case reset
    }

    public var status: Int
    public var fields: [(String, String)]
    public var body: String
    /// Pause before anything is sent.
    public var delay: Duration
    public var manner: Manner

    public init(
        _ status: Int = 200, fields: [(String, String)] = [("Content-Type", "application/json")], body: String = "",
        delay: Duration = .zero, manner: Manner = .whole
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.delay = delay
        self.manner = manner
    }

    /// A successful answer. `expiresIn` and `extra` are JSON text: `"3600"` with its quotes is a string.
    public static func token(
        _ value: String, type: String? = "Bearer", expiresIn: String? = "3600", refreshToken: String? = nil,
        extra: String? = nil, delay: Duration = .zero
    ) -> TokenEndpointAnswer {
        var members = ["\"access_token\":\"\(value)\""]
        if let type { members.append("\"token_type\":\"\(type)\"") }
        if let expiresIn { members.append("\"expires_in\":\(expiresIn)") }
        if let refreshToken { members.append("\"refresh_token\":\"\(refreshToken)\"") }
        if let extra { members.append(extra) }
        return json("{\(members.joined(separator: ","))}", delay: delay)
    }

    public static func json(
        _ body: String, status: Int = 200, fields: [(String, String)] = [], delay: Duration = .zero
    ) -> TokenEndpointAnswer {
        TokenEndpointAnswer(
            status, fields: [("Content-Type", "application/json"), ("Cache-Control", "no-store")] + fields, body: body,
            delay: delay)
    }

    /// An error answer (RFC 6749 section 5.2).
    public static func error(
        _ code: String, status: Int = 400, description: String? = nil, uri: String? = nil
    ) -> TokenEndpointAnswer {
        var members = ["\"error\":\"\(code)\""]
        if let description { members.append("\"error_description\":\"\(description)\"") }
        if let uri { members.append("\"error_uri\":\"\(uri)\"") }
        return json("{\(members.joined(separator: ","))}", status: status)
    }

    public static func status(
        _ status: Int, fields: [(String, String)] = [], body: String = ""
    ) -> TokenEndpointAnswer {
        TokenEndpointAnswer(status, fields: fields, body: body)
    }

    public static func html(_ status: Int) -> TokenEndpointAnswer {
        TokenEndpointAnswer(
            status, fields: [("Content-Type", "text/html")], body: "<!doctype html><title>Sign in</title><p>Hello")
    }

    public static func redirect(_ status: Int, to location: String) -> TokenEndpointAnswer {
        TokenEndpointAnswer(status, fields: [("Location", location)])
    }

    public static let silence = TokenEndpointAnswer(manner: .silence)
    public static let close = TokenEndpointAnswer(manner: .close)
    public static let reset = TokenEndpointAnswer(manner: .reset)

    /// Returns the same answer with a pause before it.
    public func delayed(_ delay: Duration) -> TokenEndpointAnswer {
        var answer = self
        answer.delay = delay
        return answer
    }

    func give(_ exchange: OriginExchange) throws {
        Evidence.gave(body)
        if delay > .zero { exchange.pause(delay) }
        let lines = fields.map { "\($0.0): \($0.1)\r\n" }.joined()
        let head = "HTTP/1.1 \(status) Answer\r\n\(lines)Content-Length: "
        switch manner {
        case .whole:
            try exchange.respond(status, fields: fields, body: body)
        case .drip(let pause):
            try exchange.send("\(head)\(body.utf8.count)\r\n\r\n")
            for byte in body.utf8 {
                try exchange.send([byte])
                exchange.pause(pause)
            }
        case .cut(let count):
            try exchange.send("\(head)\(body.utf8.count)\r\n\r\n")
            try exchange.send(Array(body.utf8.prefix(count)))
            exchange.close()
        case .flood(let count):
            try exchange.flood(count)
        case .silence:
            _ = exchange.waitForPeerToLeave()
            exchange.close()
        case .close:
            exchange.close()
        case .reset:
            exchange.reset()
        }
    }
}
