/// Name and version of this product, as it says them to servers and people.
public enum Product {
    public static let version = "0.1.0"
    /// `User-Agent` of the requests that the product itself makes (RFC 9110 section 10.1.5).
    public static let userAgent = "heimdallr-proxy/\(version)"
}
