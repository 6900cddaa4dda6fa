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
    case requestID
    case traceparent
    case tracestate

    /// The name in lower case; empty for `other`.
    public var name: String {
        switch self {
        case .other: ""
        case .host: "host"
        case .connection: "connection"
        case .contentLength: "content-length"
        case .transferEncoding: "transfer-encoding"
        case .te: "te"
        case .trailer: "trailer"
        case .upgrade: "upgrade"
        case .keepAlive: "keep-alive"
        case .proxyConnection: "proxy-connection"
        case .proxyAuthorization: "proxy-authorization"
        case .proxyAuthenticate: "proxy-authenticate"
        case .proxyAuthenticationInfo: "proxy-authentication-info"
        case .authorization: "authorization"
        case .via: "via"
        case .expect: "expect"
        case .maxForwards: "max-forwards"
        case .http2Settings: "http2-settings"
        case .origin: "origin"
        case .secFetchSite: "sec-fetch-site"
        case .wwwAuthenticate: "www-authenticate"
        case .proxyStatus: "proxy-status"
        case .userAgent: "user-agent"
        case .cookie: "cookie"
        case .setCookie: "set-cookie"
        case .contentType: "content-type"
        case .contentEncoding: "content-encoding"
        case .contentRange: "content-range"
        case .cacheControl: "cache-control"
        case .date: "date"
        case .server: "server"
        case .location: "location"
        case .retryAfter: "retry-after"
        case .range: "range"
        case .etag: "etag"
        case .altSvc: "alt-svc"
        case .contentLocation: "content-location"
        case .destination: "destination"
        case .requestID: "x-request-id"
        case .traceparent: "traceparent"
        case .tracestate: "tracestate"
        }
    }
}

extension KnownField {
    /// A name as words of eight bytes. The length 0 marks a free entry.
    private struct Entry {
        var length = 0
        var words = InlineArray<4, UInt64>(repeating: 0)
        var field = KnownField.other
    }

    /// Hash table with open addressing: an entry whose place is taken is in the next free one.
    private static let entries: InlineArray<128, Entry> = {
        var entries = InlineArray<128, Entry>(repeating: Entry())
        for field in allCases where field != .other {
            let name = Array(field.name.utf8)
            var entry = Entry(length: name.count, field: field)
            for start in stride(from: 0, to: name.count, by: 8) {
                entry.words[start / 8] = ASCII.folded(name.span, start, min(8, name.count - start))
            }
            var index = hash(name.span, 0, name.count)
            while entries[index & 127].length > 0 { index += 1 }
            entries[index & 127] = entry
        }
        return entries
    }()

    /// Differs for all names of today.
    @inline(__always)
    private static func hash(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Int {
        (end - start) ^ Int(bytes[start] | 0x20) * 10 ^ Int(bytes[end - 1] | 0x20) * 8
    }

    /// The field that `bytes[start..<end]` names, in any case (RFC 9110 5.1). The bytes must be a token.
    static func recognized(_ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> KnownField {
        guard start < end else { return .other }
        var index = hash(bytes, start, end)
        while entries[index & 127].length > 0 {
            if entries[index & 127].length == end - start, isName(index & 127, bytes, start, end) {
                return entries[index & 127].field
            }
            index += 1
        }
        return .other
    }

    @inline(__always)
    private static func isName(_ index: Int, _ bytes: Span<UInt8>, _ start: Int, _ end: Int) -> Bool {
        var (position, word) = (start, 0)
        while end - position >= 8 {
            guard ASCII.folded(bytes, position, 8) == entries[index].words[word] else { return false }
            position += 8
            word += 1
        }
        return position == end || ASCII.folded(bytes, position, end - position) == entries[index].words[word]
    }

    /// Fields that describe one connection and stop here (RFC 9110 7.6.1, 11.7; RFC 9112 C.2.2; RFC 9113 8.2.2).
    var isHopByHop: Bool { Self.hopByHop & bit != 0 }

    /// Fields that `Connection` can't remove: without them the next recipient would read another message, or no proxy
    /// could stop a loop (RFC 9110 7.6.1 forbids naming fields that are meant for every recipient).
    var survivesConnection: Bool { Self.protected & bit != 0 }

    /// One bit of a set of fields.
    public var bit: UInt64 { 1 << UInt64(rawValue) }

    private static let hopByHop: UInt64 =
        KnownField.connection.bit | KnownField.transferEncoding.bit | KnownField.te.bit | KnownField.trailer.bit
        | KnownField.upgrade.bit | KnownField.keepAlive.bit | KnownField.proxyConnection.bit
        | KnownField.proxyAuthorization.bit | KnownField.proxyAuthenticate.bit
        | KnownField.proxyAuthenticationInfo.bit | KnownField.http2Settings.bit

    private static let protected: UInt64 =
        KnownField.host.bit | KnownField.contentLength.bit | KnownField.via.bit | KnownField.maxForwards.bit
        | KnownField.expect.bit | KnownField.contentType.bit | KnownField.contentEncoding.bit
        | KnownField.contentRange.bit | KnownField.cacheControl.bit | KnownField.date.bit
}
