import CLibcurl
import Glibc

/// Where a next proxy is, read from its URL as libcurl does (CURLOPT_PROXY(3)).
struct NextProxyAddress {
    let host: String
    let port: UInt16
    /// The names of upstreams are looked up here, not there: socks4 and socks5, unlike socks4a and socks5h.
    let wantsAddresses: Bool

    init?(_ url: String) {
        guard let parsed = unsafe curl_url() else { return nil }
        defer { unsafe curl_url_cleanup(parsed) }
        let flags = UInt32(CURLU_NON_SUPPORT_SCHEME | CURLU_GUESS_SCHEME)
        func part(_ part: CURLUPart) -> String? {
            var text: UnsafeMutablePointer<CChar>?
            guard unsafe curl_url_get(parsed, part, &text, 0) == CURLUE_OK, let text = unsafe text else { return nil }
            defer { unsafe curl_free(text) }
            return unsafe String(cString: text)
        }
        guard unsafe curl_url_set(parsed, CURLUPART_URL, url, flags) == CURLUE_OK, let host = part(CURLUPART_HOST)
        else { return nil }
        let scheme = part(CURLUPART_SCHEME) ?? "http"
        self.host = host
        port = part(CURLUPART_PORT).flatMap { UInt16($0) } ?? (scheme == "https" ? 443 : 1080)
        wantsAddresses = ["socks", "socks4", "socks5"].contains(scheme)
    }

    /// The one that the process's environment names for a scheme (libcurl-env(3)), whether or not `no_proxy` exempts who
    /// is asked for.
    static func environment(_ scheme: Origin.Scheme) -> NextProxyAddress? {
        // Only in small letters for http: HTTP_PROXY is what a CGI program's client can set.
        let names = scheme == .http ? ["http_proxy"] : ["https_proxy", "HTTPS_PROXY"]
        for name in names + ["all_proxy", "ALL_PROXY"] {
            guard let value = unsafe getenv(name), unsafe value.pointee != 0 else { continue }
            return NextProxyAddress(unsafe String(cString: value))
        }
        return nil
    }
}
