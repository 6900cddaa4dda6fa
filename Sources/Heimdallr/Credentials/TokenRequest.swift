/// A token request that is being built. Grant, configuration and credentials add form parameters or header fields.
public struct TokenRequest: Sendable, Equatable, Redacted {
    /// The body, escaped only when it is sent (RFC 6749 section 3.2).
    public var form: [FormParameter]
    /// Header fields, without those that the HTTP client adds.
    public var headers: [HeimdallrHTTPField]
    /// Secrets of the request. They are removed from server messages in errors and logs.
    public var secrets: [Secret]
    /// Encoding of the Basic credentials, if another encoding would give other bytes; otherwise `nil`.
    public var ambiguousEncoding: BasicEncoding?
    /// URL of the token endpoint, for assertions that name it; `nil`: unknown.
    public var tokenEndpoint: String?
    /// The issuer, for assertions that name it; `nil`: unknown.
    public var issuer: String?

    /// The parameters are the properties of the same names.
    public init(form: [FormParameter] = [], headers: [HeimdallrHTTPField] = [], secrets: [Secret] = []) {
        self.form = form
        self.headers = headers
        self.secrets = secrets
    }

    /// Sets a parameter. Replaces all parameters with its name.
    public mutating func set(_ parameter: FormParameter) {
        form.removeAll { $0.name == parameter.name }
        form.append(parameter)
    }
}
