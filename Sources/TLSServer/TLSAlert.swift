import CLibssl

/// An alert of TLS (RFC 8446 section 6).
public struct TLSAlert: Sendable, Hashable, CustomStringConvertible {
    public let number: UInt8

    public init(number: UInt8) { self.number = number }

    public static let noApplicationProtocol = TLSAlert(number: UInt8(SSL_AD_NO_APPLICATION_PROTOCOL))
    public static let internalError = TLSAlert(number: UInt8(SSL_AD_INTERNAL_ERROR))
    public static let unrecognizedName = TLSAlert(number: UInt8(SSL_AD_UNRECOGNIZED_NAME))
    static let closeNotify = TLSAlert(number: UInt8(SSL3_AD_CLOSE_NOTIFY))
    static let noRenegotiation = TLSAlert(number: UInt8(TLS1_AD_NO_RENEGOTIATION))

    /// Name of the alert in RFC 8446, such as `unknown_ca`. SSL_alert_desc_string_long(3).
    public var description: String {
        guard let words = unsafe SSL_alert_desc_string_long(Int32(number)) else { return "alert_\(number)" }
        let name = unsafe String(cString: words)
        // libssl 3.0 has no name for this alert (RFC 8446 section 6.2).
        if number == UInt8(SSL_AD_CERTIFICATE_REQUIRED) { return "certificate_required" }
        guard name != "unknown" else { return "alert_\(number)" }
        return String(name.lowercased().map { $0 == " " ? "_" : $0 })
    }
}
