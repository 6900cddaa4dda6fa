internal import WireText

/// The answer of a device authorization endpoint: RFC 8628 section 3.2.
struct DeviceAuthorization: Sendable {
    var deviceCode: Secret
    var userCode: String
    var verificationURI: String
    var verificationURIComplete: String?
    var expiresIn: Duration
    var interval: Duration

    /// `nil`: the body has another form, or holds an unsafe address.
    init?(_ body: [UInt8]) {
        guard let value = try? JSONParser.parse(body), let code = value["device_code"]?.string, !code.isEmpty,
            code.utf8.allSatisfy({ (0x20...0x7E).contains($0) }), let userCode = value["user_code"]?.string,
            !userCode.isEmpty, userCode.count <= 128,
            // The second name is Google's.
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

    /// A web page; not a script, and nothing that could end a line on a terminal.
    private static func isAddress(_ text: String) -> Bool {
        let lowered = text.lowercased()
        return (lowered.hasPrefix("https://") || lowered.hasPrefix("http://")) && text.utf8.count <= 2048
            && text.utf8.allSatisfy { $0 > 0x20 && $0 < 0x7F }
    }
}

/// A login on another device that has begun: RFC 8628 section 3.2. Prints as `<redacted>`.
public struct DeviceLogin: Sendable, Redacted {
    /// The name of the client: `Heimdallr.name`.
    public let client: String
    /// The code that the person types: `user_code`, made printable.
    public let userCode: String
    /// Where they type it in: `verification_uri`, an http:// or https:// URL.
    public let verificationURI: String
    /// The same with the code in it, to be shown as a QR code: `verification_uri_complete`. `nil`: the server has none.
    public let verificationURIComplete: String?
    /// When the codes expire.
    public let expiresAt: ContinuousClock.Instant
    /// How long to wait between two questions whether the person has logged in.
    public let interval: Duration

    let deviceCode: Secret
    /// Record of the client that began it. A client with another one has another server or account.
    let record: String
}
