/// A token request that is being put together. Grant, configuration and credentials each add their part to the form or
/// the header fields without knowing the others.
public struct TokenRequest: Sendable, Equatable, Redacted {
    /// The body, escaped only when it is sent (RFC 6749 section 3.2).
    public var form: [FormParameter]
    /// Header fields besides those that the HTTP client adds itself.
    public var headers: [HeimdallrHTTPField]
    /// Every secret that the request carries. Where the server's answer repeats one of them, it is left out of errors
    /// and logs.
    public var secrets: [Secret]
    /// The encoding that was used for Basic credentials. `nil`: every encoding gives the same bytes, so it can't be the
    /// cause of a refusal.
    public var ambiguousEncoding: BasicEncoding?
    /// Where the client's token requests go, for assertions that name it; `nil`: not known.
    public var tokenEndpoint: String?
    /// The configured issuer, for assertions that name it.
    public var issuer: String?

    /// - Parameters:
    ///   - form: the parameters that are known so far.
    ///   - headers: the header fields that are known so far.
    ///   - secrets: the secrets among them.
    public init(form: [FormParameter] = [], headers: [HeimdallrHTTPField] = [], secrets: [Secret] = []) {
        self.form = form
        self.headers = headers
        self.secrets = secrets
    }

    /// Sets a parameter, in place of all that have its name.
    public mutating func set(_ parameter: FormParameter) {
        form.removeAll { $0.name == parameter.name }
        form.append(parameter)
    }
}
