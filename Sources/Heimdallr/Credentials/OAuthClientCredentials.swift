internal import Cryptography

/// Who we are, to the token endpoint.
public protocol OAuthClientCredentials: Sendable {
    /// The `client_id`.
    var identifier: String { get }

    /// Puts the client's authentication onto a token request. Called once for each request, so that one-time
    /// assertions and rotated secrets work.
    /// - Throws: when the secret can't be had; the request is then not sent.
    func authenticate(_ request: inout TokenRequest) async throws
}

/// How the two halves of Basic credentials are escaped: servers differ, and no encoding suits all.
public enum BasicEncoding: String, Sendable, Hashable, CaseIterable {
    /// RFC 6749 section 2.3.1: form encoding.
    case form
    /// Percent-encoding, a space as `%20`.
    case percent
    /// As they are, in UTF-8.
    case raw
}

/// An identifier and, for a confidential client, a secret. A client without a secret is public and sends only its
/// `client_id`, in the form.
public struct OAuthClientSecretCredentials: OAuthClientCredentials {
    public enum Method: Sendable, Hashable {
        /// `client_secret_basic`
        case basic(BasicEncoding)
        /// `client_secret_post`
        case post
    }

    public let identifier: String
    private let secret: (any SecretProvider)?
    private let method: Method

    /// A confidential client.
    public init(identifier: String, secret: any SecretProvider, method: Method = .basic(.form)) {
        self.identifier = identifier
        self.secret = secret
        self.method = method
    }

    /// A public client, method `none`.
    public init(identifier: String) {
        self.identifier = identifier
        self.secret = nil
        self.method = .post
    }

    public func authenticate(_ request: inout TokenRequest) async throws {
        guard let secret = try await secret?.secret() else {
            request.set(FormParameter("client_id", identifier))
            return
        }
        request.secrets.append(secret)
        switch method {
        case .post:
            request.set(FormParameter("client_id", identifier))
            request.set(FormParameter("client_secret", secret))
        case .basic(let encoding):
            request.form.removeAll { $0.name == "client_id" || $0.name == "client_secret" }
            let pair = self.pair(secret, encoding)
            let isAmbiguous = BasicEncoding.allCases.contains { !self.pair(secret, $0).isEqual(to: pair) }
            request.ambiguousEncoding = isAmbiguous ? encoding : nil
            let value = Base64.encode(pair)
            request.secrets.append(Secret(value))
            request.headers.removeAll { ASCII.equalIgnoringCase($0.name, "Authorization") }
            request.headers.append(HeimdallrHTTPField(name: "Authorization", secret: Secret("Basic ", before: value)))
        }
    }

    private func pair(_ secret: Secret, _ encoding: BasicEncoding) -> SecretBytes {
        var pair = SecretWriter(capacity: 256)
        Self.encode(Array(identifier.utf8).span, encoding, to: &pair)
        pair.append(UInt8(ascii: ":"))
        secret.withSpan { Self.encode($0, encoding, to: &pair) }
        return pair.finish()
    }

    private static func encode(_ bytes: Span<UInt8>, _ encoding: BasicEncoding, to output: inout SecretWriter) {
        switch encoding {
        case .form: FormEncoding.form(bytes, to: &output)
        case .percent: FormEncoding.percent(bytes, to: &output)
        case .raw: output.append(bytes)
        }
    }
}
