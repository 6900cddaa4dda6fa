internal import WireText

/// One header field (RFC 9110 section 5).
public struct HeimdallrHTTPField: Sendable {
    /// The field's name, in any case.
    public var name: String
    private var content: Content

    private enum Content: Sendable {
        case text(String)
        case secret(Secret)
    }

    /// A field whose value is no secret.
    public init(name: String, value: String) {
        self.name = name
        content = .text(value)
    }

    /// A field whose value is wiped from memory with its last copy.
    public init(name: String, secret: Secret) {
        self.name = name
        content = .secret(secret)
    }

    /// The value. For a secret this is a copy that is not wiped: an HTTP client should send `secret` instead.
    public var value: String {
        get {
            switch content {
            case .text(let text): text
            case .secret(let secret): secret.revealed
            }
        }
        set { content = .text(newValue) }
    }

    /// The value if it is a secret; otherwise `nil`: read `value` then.
    public var secret: Secret? { if case .secret(let secret) = content { secret } else { nil } }
}

extension HeimdallrHTTPField {
    /// Returns the fields, with `Accept` unless they have it.
    static func accepting(_ type: String, _ fields: [HeimdallrHTTPField]) -> [HeimdallrHTTPField] {
        let hasAccept = fields.contains { ASCII.equalIgnoringCase($0.name, "Accept") }
        return hasAccept ? fields : fields + [HeimdallrHTTPField(name: "Accept", value: type)]
    }
}

/// Compares name and value. A secret value equals the same value as plain text.
extension HeimdallrHTTPField: Hashable {
    public static func == (one: HeimdallrHTTPField, other: HeimdallrHTTPField) -> Bool {
        one.name == other.name && (one.secret ?? Secret(one.value)) == (other.secret ?? Secret(other.value))
    }

    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// A request in memory. Prints without header values and body, because they hold credentials.
public struct HeimdallrHTTPRequest: Sendable, Equatable, Redacted {
    /// The method, in upper case.
    public var method: String
    /// The absolute URL, `https://…` or `http://…`.
    public var url: String
    /// The header fields, in the order of sending.
    public var headers: [HeimdallrHTTPField]
    /// The body, wiped from memory with its last copy.
    public var content: Secret
    /// Time limit of the exchange, from connect to the last byte of the response.
    public var timeout: Duration
    /// Longest accepted response body, in bytes. A longer body is `HeimdallrHTTPClientError.bodyTooLarge`.
    public var maxBodyBytes: Int

    /// Makes a request whose body is no secret.
    public init(
        method: String = "GET", url: String, headers: [HeimdallrHTTPField] = [], body: [UInt8] = [],
        timeout: Duration = .seconds(10), maxBodyBytes: Int = 1 << 20
    ) {
        self.init(
            method: method, url: url, headers: headers, content: Secret(body), timeout: timeout,
            maxBodyBytes: maxBodyBytes)
    }

    /// Makes a request whose body is wiped from memory with its last copy.
    public init(
        method: String, url: String, headers: [HeimdallrHTTPField], content: Secret,
        timeout: Duration = .seconds(10), maxBodyBytes: Int = 1 << 20
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.content = content
        self.timeout = timeout
        self.maxBodyBytes = maxBodyBytes
    }

    /// A copy of the body, which is not wiped. An HTTP client should send `content` instead.
    public var body: [UInt8] {
        get { content.revealedBytes }
        set { content = Secret(newValue) }
    }

    public var description: String {
        "\(method) \(url.prefix { $0 != "?" }), \(headers.count) headers, \(content.count) bytes"
    }
}

/// A complete response. Prints without header values and body, because they hold tokens.
public struct HeimdallrHTTPResponse: Sendable, Equatable, Redacted {
    /// The status code (RFC 9110 section 15).
    public var status: Int
    /// The header fields, in the order of arrival.
    public var headers: [HeimdallrHTTPField]
    /// The body, wiped from memory with its last copy.
    public var content: Secret

    /// Makes a response whose body is no secret.
    public init(status: Int, headers: [HeimdallrHTTPField] = [], body: [UInt8] = []) {
        self.init(status: status, headers: headers, content: Secret(body))
    }

    /// Makes a response whose body is wiped from memory with its last copy.
    public init(status: Int, headers: [HeimdallrHTTPField], content: Secret) {
        self.status = status
        self.headers = headers
        self.content = content
    }

    /// A copy of the body, which is not wiped.
    public var body: [UInt8] {
        get { content.revealedBytes }
        set { content = Secret(newValue) }
    }

    /// Returns the value of the first field with this name, in any case; `nil`: there is none.
    public func header(_ name: String) -> String? { headers.first { ASCII.equalIgnoringCase($0.name, name) }?.value }

    public var description: String { "HTTP \(status), \(headers.count) headers, \(content.count) bytes" }
}
