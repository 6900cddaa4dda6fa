internal import Cryptography
internal import WireText

/// Authentication of a client at the token endpoint: RFC 6749 section 2.3.
public protocol OAuthClientCredentials: Sendable {
    /// The `client_id` (RFC 6749 section 2.2).
    var identifier: String { get }

    /// Whether `authenticate` needs `tokenEndpoint` even in requests to other endpoints. `false` by default.
    var needsTokenEndpoint: Bool { get }

    /// Kind of authentication, for advice after a refusal. `.password` by default.
    var authentication: ClientAuthentication { get }

    /// Adds the client's authentication to a token request. Called once for each request, on any thread.
    /// - Parameter request: the form and headers so far. Add every secret to its `secrets` too.
    /// - Throws: any error if the secret is unavailable. The request is then not sent. Of these errors, only the text
    ///   of a `SecretProviderError` is shown to the operator.
    func authenticate(_ request: inout TokenRequest) async throws
}

extension OAuthClientCredentials {
    public var needsTokenEndpoint: Bool { false }
    public var authentication: ClientAuthentication { .password }
}

/// Kinds of client authentication.
public enum ClientAuthentication: Sendable, Hashable {
    /// Only the `client_id`.
    case none
    /// The client's secret itself, in a header or in the form (RFC 6749 section 2.3.1).
    case password
    /// An assertion that the shared secret signs.
    case sharedKey
    /// An assertion that a private key signs.
    case key
    /// An assertion that another party makes.
    case assertion
    /// A client certificate.
    case certificate
}

/// Escaping of `client_id` and secret in Basic credentials. Servers differ, and no encoding works for all.
public enum BasicEncoding: String, Sendable, Hashable, CaseIterable {
    /// Form encoding, a space as `+`: the rule of RFC 6749 section 2.3.1.
    case form
    /// Percent-encoding (RFC 3986 section 2.1), a space as `%20`.
    case percent
    /// Not escaped: the UTF-8 bytes as they are.
    case raw
}

/// A `client_id` and, for a confidential client, a secret. A public client sends only its `client_id`, in the form.
public struct OAuthClientSecretCredentials: OAuthClientCredentials {
    /// Place of the secret in a token request, with the names of the OAuth registry (RFC 7591 section 2).
    public enum Method: Sendable, Hashable {
        /// `client_secret_basic`: in the header `Authorization: Basic …`.
        case basic(BasicEncoding)
        /// `client_secret_post`: as `client_id` and `client_secret` in the form.
        case post
    }

    public let identifier: String
    private let secret: (any SecretProvider)?
    private let method: Method

    /// Makes a confidential client. The secret is read before each token request.
    public init(identifier: String, secret: any SecretProvider, method: Method = .basic(.form)) {
        self.identifier = identifier
        self.secret = secret
        self.method = method
    }

    /// Makes a public client, without a secret (`none`).
    public init(identifier: String) {
        self.identifier = identifier
        self.secret = nil
        self.method = .post
    }

    public var authentication: ClientAuthentication { secret == nil ? .none : .password }

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
            // Spaces or line ends around a secret probably come from an editor. Another encoding would not help then.
            request.ambiguousEncoding = isAmbiguous && !Self.hasBlankEnd(secret) ? encoding : nil
            let value = Base64.encode(pair)
            request.secrets.append(Secret(value))
            request.headers.removeAll { ASCII.equalIgnoringCase($0.name, "Authorization") }
            request.headers.append(HeimdallrHTTPField(name: "Authorization", secret: Secret("Basic ", before: value)))
        }
    }

    private static func hasBlankEnd(_ secret: Secret) -> Bool {
        secret.withSpan { bytes in
            guard !bytes.isEmpty else { return false }
            return [bytes[0], bytes[bytes.count - 1]].contains { [0x09, 0x0A, 0x0D, 0x20].contains($0) }
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
        case .form: PercentEncoding.form.encode(bytes) { output.append($0) }
        case .percent: PercentEncoding.uri.encode(bytes) { output.append($0) }
        case .raw: output.append(bytes)
        }
    }
}

/// A client without authentication, for assertions and token exchange (RFC 7521 section 4.1, RFC 8693 section 2.1).
public struct OAuthNoClientCredentials: OAuthClientCredentials {
    /// Empty, and not sent.
    public let identifier = ""

    public let authentication = ClientAuthentication.none

    /// Makes the credentials, which have no settings.
    public init() {}

    /// Adds nothing.
    public func authenticate(_ request: inout TokenRequest) {}
}
