/// A login on another device that has begun: RFC 8628 section 3.2. Prints as `<redacted>`.
public struct DeviceLogin: Sendable, Redacted {
    /// The client's name.
    public let client: String
    /// What the person types in. Printable.
    public let userCode: String
    /// Where they type it in: an http or https URL.
    public let verificationURI: String
    /// The same with the code in it, for a QR code; where the server offers it.
    public let verificationURIComplete: String?
    /// From here on the codes are of no use.
    public let expiresAt: ContinuousClock.Instant
    /// Between two questions whether it is done.
    public let interval: Duration

    let deviceCode: Secret
}
