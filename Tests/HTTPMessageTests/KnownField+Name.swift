@testable import HTTPMessage

// The names are written twice: here as text, in the reader as numbers.
extension KnownField {
    /// The name in lower case; empty for `other`.
    var name: String {
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
        case .cdnLoop: "cdn-loop"
        }
    }
}
