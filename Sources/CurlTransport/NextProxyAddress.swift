import CLibcurl
import Glibc

/// Parts of a next proxy's URL, as libcurl's parser reads them for CURLOPT_PROXY(3).
struct NextProxyAddress: Equatable {
    let scheme: String
    let host: String
    let port: UInt16
    /// User name; `nil` if the URL has neither user nor password.
    let user: [UInt8]?
    let password: [UInt8]

    /// Whether the proxy gets upstreams' addresses, which this process looks up. Other proxies get the names.
    var wantsAddresses: Bool { ["socks", "socks4", "socks5"].contains(scheme) }

    /// - Throws: `TransportError` for a malformed URL.
    init(_ url: String) throws(TransportError) {
        guard let parsed = unsafe curl_url() else {
            throw TransportError(.internal, message: "curl_url: out of memory")
        }
        defer { unsafe curl_url_cleanup(parsed) }
        // A URL without a scheme names an http proxy.
        let text = url.contains("://") ? url : "http://" + url
        guard unsafe curl_url_set(parsed, CURLUPART_URL, text, UInt32(CURLU_NON_SUPPORT_SCHEME)) == CURLUE_OK,
            let host = unsafe Self.part(parsed, CURLUPART_HOST)
        else { throw TransportError(.proxy, message: "the next proxy's URL is malformed") }
        self.host = String(decoding: host, as: UTF8.self)
        scheme = String(decoding: unsafe Self.part(parsed, CURLUPART_SCHEME) ?? [], as: UTF8.self)
        let port = unsafe Self.part(parsed, CURLUPART_PORT).flatMap { UInt16(String(decoding: $0, as: UTF8.self)) }
        self.port = port ?? (scheme == "https" ? 443 : 1080)
        let password = unsafe Self.part(parsed, CURLUPART_PASSWORD, decoded: true)
        self.password = password ?? []
        user = unsafe Self.part(parsed, CURLUPART_USER, decoded: true) ?? (self.password.isEmpty ? nil : [])
    }

    private static func part(_ url: OpaquePointer, _ part: CURLUPart, decoded: Bool = false) -> [UInt8]? {
        var text: UnsafeMutablePointer<CChar>?
        guard unsafe curl_url_get(url, part, &text, decoded ? UInt32(CURLU_URLDECODE) : 0) == CURLUE_OK,
            let text = unsafe text
        else { return nil }
        defer { unsafe curl_free(text) }
        return unsafe Array(UnsafeRawBufferPointer(start: text, count: strlen(text)))
    }
}
