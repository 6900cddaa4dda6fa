internal import HTTPMessage
internal import WireText

/// The response of a device authorization endpoint: RFC 8628 section 3.2.
struct DeviceAuthorization: Sendable {
    var deviceCode: Secret
    var userCode: String
    var verificationURI: String
    var verificationURIComplete: String?
    var expiresIn: Duration
    var interval: Duration

    /// Parses a response, JSON or a form; `nil` if it has another form or an unsafe address.
    init?(_ body: [UInt8]) {
        let value = AnswerBody.json(of: Secret(body)).withSpan { try? JSONParser.parse($0) }
        guard let value, let code = value["device_code"]?.string, !code.isEmpty,
            code.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), let userCode = value["user_code"]?.string,
            !userCode.isEmpty, userCode.count <= 128,
            // Google uses the second name.
            let uri = (value["verification_uri"] ?? value["verification_url"])?.string, Self.isAddress(uri)
        else { return nil }
        deviceCode = Secret(code)
        self.userCode = ForeignText.printable(userCode)
        verificationURI = uri
        verificationURIComplete = value["verification_uri_complete"]?.string.flatMap { Self.isAddress($0) ? $0 : nil }
        let life = value["expires_in"].flatMap(OAuthAccessTokenDefaultParser.seconds)
        expiresIn = .seconds(min(max(life ?? 600, 0), 24 * 3600))
        let pause = value["interval"].flatMap(OAuthAccessTokenDefaultParser.seconds)
        interval = .seconds(min(max(pause ?? 5, 1), 300))
    }

    /// Whether the text is the URL of a web page. Excludes scripts and control characters, which could harm a terminal.
    private static func isAddress(_ text: String) -> Bool {
        text.utf8.count <= 2048 && (try? WebURL(text, allowing: .fragment)) != nil
    }
}

/// A login on another device in progress: RFC 8628 section 3.2. Prints as `<redacted>`.
public struct DeviceLogin: Sendable, Redacted {
    /// The name of the client: `Heimdallr.name`.
    public let client: String
    /// The code that the person enters: `user_code`, made printable.
    public let userCode: String
    /// The page on which the person enters the code: `verification_uri`, an http:// or https:// URL.
    public let verificationURI: String
    /// The same page with the code in its URL, for a QR code: `verification_uri_complete`; `nil`: the server sent none.
    public let verificationURIComplete: String?
    /// Expiry of the codes.
    public let expiresAt: ContinuousClock.Instant
    /// Interval between two polls.
    public let interval: Duration

    let deviceCode: Secret
    /// Record name of the client when the login began. It depends on server, `client_id` and account.
    let record: String
}
