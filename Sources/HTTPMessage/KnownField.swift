import WireText

/// The field names that a proxy acts on. All other names are `other` and compared by their bytes.
public enum KnownField: UInt8, Sendable, Equatable, CaseIterable {
    case other
    case host
    case connection
    case contentLength
    case transferEncoding
    case te
    case trailer
    case upgrade
    case keepAlive
    case proxyConnection
    case proxyAuthorization
    case proxyAuthenticate
    case proxyAuthenticationInfo
    case authorization
    case via
    case expect
    case maxForwards
    case http2Settings
    case origin
    case secFetchSite
    case wwwAuthenticate
    case proxyStatus
    case userAgent
    case cookie
    case setCookie
    case contentType
    case contentEncoding
    case contentRange
    case cacheControl
    case date
    case server
    case location
    case retryAfter
    case range
    case etag
    case altSvc
    case contentLocation
    case destination
    /// `X-Request-Id`
    case requestID
    case traceparent
    case tracestate
    /// `CDN-Loop` (RFC 8586)
    case cdnLoop
}

extension KnownField {
    /// The field that `bytes[start..<end]` names, in any case (RFC 9110 5.1). The bytes must be a token.
    ///
    /// Compares by length, then by words of eight bytes, without a table, hash or string.
    @inline(__always)
    static func recognized(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> KnownField {
        end - start <= 8 ? short(bytes, start, end - start) : long(bytes, start, end - start)
    }

    private static func short(_ bytes: Span<UInt8>, _ start: Int, _ length: Int) -> KnownField {
        switch length {
        case 2: ASCII.folded(bytes, start, 2) == 0x7465 ? .te : .other
        case 3: ASCII.folded(bytes, start, 3) == 0x76_6961 ? .via : .other
        case 4:
            switch ASCII.folded(bytes, start, 4) {
            case 0x686F_7374: .host
            case 0x6461_7465: .date
            case 0x6574_6167: .etag
            default: .other
            }
        case 5: ASCII.folded(bytes, start, 5) == 0x72_616E_6765 ? .range : .other
        case 6:
            switch ASCII.folded(bytes, start, 6) {
            case 0x6578_7065_6374: .expect
            case 0x6F72_6967_696E: .origin
            case 0x636F_6F6B_6965: .cookie
            case 0x7365_7276_6572: .server
            default: .other
            }
        case 7:
            switch ASCII.folded(bytes, start, 7) {
            case 0x74_7261_696C_6572: .trailer
            case 0x75_7067_7261_6465: .upgrade
            case 0x61_6C74_2D73_7663: .altSvc
            default: .other
            }
        case 8:
            switch ASCII.folded(bytes, start, 8) {
            case 0x6C6F_6361_7469_6F6E: .location
            case 0x6364_6E2D_6C6F_6F70: .cdnLoop
            default: .other
            }
        default: .other
        }
    }

    private static func long(_ bytes: Span<UInt8>, _ start: Int, _ length: Int) -> KnownField {
        let first = ASCII.folded(bytes, start, 8)
        switch length {
        case 10:
            switch (first, ASCII.folded(bytes, start + 8, 2)) {
            case (0x636F_6E6E_6563_7469, 0x6F6E): return .connection
            case (0x6B65_6570_2D61_6C69, 0x7665): return .keepAlive
            case (0x7573_6572_2D61_6765, 0x6E74): return .userAgent
            case (0x7365_742D_636F_6F6B, 0x6965): return .setCookie
            case (0x7472_6163_6573_7461, 0x7465): return .tracestate
            default: return .other
            }
        case 11:
            switch (first, ASCII.folded(bytes, start + 8, 3)) {
            case (0x7265_7472_792D_6166, 0x74_6572): return .retryAfter
            case (0x6465_7374_696E_6174, 0x69_6F6E): return .destination
            case (0x7472_6163_6570_6172, 0x65_6E74): return .traceparent
            default: return .other
            }
        case 12:
            switch (first, ASCII.folded(bytes, start + 8, 4)) {
            case (0x6D61_782D_666F_7277, 0x6172_6473): return .maxForwards
            case (0x7072_6F78_792D_7374, 0x6174_7573): return .proxyStatus
            case (0x636F_6E74_656E_742D, 0x7479_7065): return .contentType
            case (0x782D_7265_7175_6573, 0x742D_6964): return .requestID
            default: return .other
            }
        case 13:
            switch (first, ASCII.folded(bytes, start + 8, 5)) {
            case (0x6175_7468_6F72_697A, 0x61_7469_6F6E): return .authorization
            case (0x636F_6E74_656E_742D, 0x72_616E_6765): return .contentRange
            case (0x6361_6368_652D_636F, 0x6E_7472_6F6C): return .cacheControl
            default: return .other
            }
        case 14:
            switch (first, ASCII.folded(bytes, start + 8, 6)) {
            case (0x636F_6E74_656E_742D, 0x6C65_6E67_7468): return .contentLength
            case (0x6874_7470_322D_7365, 0x7474_696E_6773): return .http2Settings
            case (0x7365_632D_6665_7463, 0x682D_7369_7465): return .secFetchSite
            default: return .other
            }
        case 16:
            switch (first, ASCII.folded(bytes, start + 8, 8)) {
            case (0x7072_6F78_792D_636F, 0x6E6E_6563_7469_6F6E): return .proxyConnection
            case (0x7777_772D_6175_7468, 0x656E_7469_6361_7465): return .wwwAuthenticate
            case (0x636F_6E74_656E_742D, 0x656E_636F_6469_6E67): return .contentEncoding
            case (0x636F_6E74_656E_742D, 0x6C6F_6361_7469_6F6E): return .contentLocation
            default: return .other
            }
        case 17...25: return veryLong(bytes, start, length, first)
        default: return .other
        }
    }

    private static func veryLong(_ bytes: Span<UInt8>, _ start: Int, _ length: Int, _ first: UInt64) -> KnownField {
        let second = ASCII.folded(bytes, start + 8, 8)
        let third = ASCII.folded(bytes, start + 16, min(length - 16, 8))
        switch (length, first, second, third) {
        case (17, 0x7472_616E_7366_6572, 0x2D65_6E63_6F64_696E, 0x67): return .transferEncoding
        case (18, 0x7072_6F78_792D_6175, 0x7468_656E_7469_6361, 0x7465): return .proxyAuthenticate
        case (19, 0x7072_6F78_792D_6175, 0x7468_6F72_697A_6174, 0x69_6F6E): return .proxyAuthorization
        case (25, 0x7072_6F78_792D_6175, 0x7468_656E_7469_6361, 0x7469_6F6E_2D69_6E66)
        where bytes[start + 24] | 0x20 == 0x6F:
            return .proxyAuthenticationInfo
        default: return .other
        }
    }

    /// Whether the field is for one connection only (RFC 9110 7.6.1, 11.7; RFC 9112 C.2.2; RFC 9113 8.2.2).
    var isHopByHop: Bool { Self.hopByHop & bit != 0 }

    /// Whether the field is forwarded even if `Connection` names it. Without the field, the next recipient would
    /// misread the message, or miss a loop. RFC 9110 7.6.1 forbids clients to name fields that are for every recipient.
    var survivesConnection: Bool { Self.protected & bit != 0 }

    /// The field's bit in a set of fields.
    public var bit: UInt64 { 1 << UInt64(rawValue) }

    private static let hopByHop: UInt64 =
        KnownField.connection.bit | KnownField.transferEncoding.bit | KnownField.te.bit | KnownField.trailer.bit
        | KnownField.upgrade.bit | KnownField.keepAlive.bit | KnownField.proxyConnection.bit
        | KnownField.proxyAuthorization.bit | KnownField.proxyAuthenticate.bit
        | KnownField.proxyAuthenticationInfo.bit | KnownField.http2Settings.bit

    private static let protected: UInt64 =
        KnownField.host.bit | KnownField.contentLength.bit | KnownField.via.bit | KnownField.maxForwards.bit
        | KnownField.expect.bit | KnownField.contentType.bit | KnownField.contentEncoding.bit
        | KnownField.contentRange.bit | KnownField.cacheControl.bit | KnownField.date.bit | KnownField.cdnLoop.bit
}
