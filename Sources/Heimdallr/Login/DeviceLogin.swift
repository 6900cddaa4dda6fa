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
