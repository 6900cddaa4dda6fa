/// A token request while it is put together: the form and the header fields, still apart, so that each part can add
/// to it without having to know the others.
public struct TokenRequest: Sendable, Equatable, Redacted {
    public var form: [FormParameter]
    public var headers: [HeimdallrHTTPField]
    /// What must not come back in a message: added to by whoever puts a secret into the request.
    public var secrets: [Secret]
    /// How Basic credentials were written, where the encodings differ for them; `nil`: they are the same in all.
    public var ambiguousEncoding: BasicEncoding?

    public init(form: [FormParameter] = [], headers: [HeimdallrHTTPField] = [], secrets: [Secret] = []) {
        self.form = form
        self.headers = headers
        self.secrets = secrets
    }

    /// Sets a parameter, taking out what was there under that name.
    public mutating func set(_ parameter: FormParameter) {
        form.removeAll { $0.name == parameter.name }
        form.append(parameter)
    }
}
