import HTML
import HTTPServer
import Heimdallr
import Reactor
import WireText

// Facts of a request for the administration.
extension ServerRequest {
    /// All Host fields, and the target's authority if it differs from each of them.
    var hosts: [String] {
        let hosts = values("Host")
        let asked = authority.lowercased()
        return asked.isEmpty || hosts.contains { $0.lowercased() == asked } ? hosts : hosts + [authority]
    }

    var sites: [String] { values("Sec-Fetch-Site") }

    /// Path and query.
    var target: String { path + (query.map { "?" + $0 } ?? "") }

    /// Address of the client, for the log and the limits. An IPv4 address mapped to IPv6 is written as IPv4.
    var caller: String {
        peerAddress.map { NumericAddress($0)?.socketAddress(port: 0).host ?? $0.host } ?? "a local socket"
    }

    /// Whether a browser opens the page as a document, neither in a frame nor by a script (Fetch Metadata).
    var isNavigation: Bool {
        guard method == "GET" || method == "HEAD", values("Origin").isEmpty else { return false }
        return value("Sec-Fetch-Mode") == "navigate" && value("Sec-Fetch-Dest") == "document"
    }

    private var pairs: [(name: String?, value: String?)] {
        (query ?? "").split(separator: "&").map { FormText.pair($0.utf8) }
    }

    /// The first parameter of this name in the query.
    func parameter(_ name: String) -> String? { pairs.first { $0.name == name }?.value }

    /// The values of all parameters of this name in the query.
    func parameters(_ name: String) -> [String] { pairs.compactMap { $0.name == name ? $0.value : nil } }

    /// Whether the query has this word, without a value or with a value other than `false` and `0`.
    func asksFor(_ word: String) -> Bool {
        guard let value = parameter(word) else { return false }
        return value != "false" && value != "0"
    }

    /// Cookies by name. If a name is repeated, the first cookie counts: it has the longer path (RFC 6265 section 5.4).
    var cookies: [String: String] {
        let pairs = values("Cookie").joined(separator: ";").split(separator: ";").map {
            $0.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        }
        let named = pairs.filter { $0.count == 2 }.map { (String($0[0].drop { $0 == " " }), String($0[1])) }
        return Dictionary(named) { first, _ in first }
    }

    var wantsPlainText: Bool { value("Accept") == "text/plain" }

    /// Bearer token of the Authorization field; `nil` if the field is absent or repeated, or has another scheme.
    var bearerToken: Secret? {
        let fields = values("Authorization")
        guard fields.count == 1 else { return nil }
        let parts = fields[0].split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return Secret(String(parts[1]))
    }

    var text: String { String(decoding: body, as: UTF8.self) }

    /// The fields of a form (application/x-www-form-urlencoded); `nil` for another body, or with a repeated field.
    var form: [String: String]? { isForm ? FormText.fields(text.utf8) : nil }

    var isForm: Bool {
        let type = value("Content-Type")?.lowercased().prefix { $0 != ";" }
        return type == "application/x-www-form-urlencoded"
    }
}

extension ServerResponse {
    /// A page that may load only our style and script.
    /// - Parameters:
    ///   - sendsForms: whether the page has forms, and so sends a referrer to this origin. Without a referrer, a form's
    ///     Origin would be `null` (Fetch standard, "append a request Origin header").
    ///   - toOtherOrigins: whether a form's answer redirects to another origin, which `form-action` must allow.
    static func page(
        _ status: Int, _ html: HTML, sendsForms: Bool = false, toOtherOrigins: Bool = false
    ) -> ServerResponse {
        var response = ServerResponse(status: status, type: "text/html; charset=utf-8", html.text)
        response.set(
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "form-action 'self'\(toOtherOrigins ? " http: https:" : ""); base-uri 'none'; frame-ancestors 'none'")
        if sendsForms { response.set("Referrer-Policy", "same-origin") }
        return response
    }

    /// 303 See Other (RFC 9110 section 15.4.4): the browser follows with GET.
    static func redirect(to url: String) -> ServerResponse {
        ServerResponse(status: 303, fields: [("Location", url)])
    }

    /// - Parameter maxAge: in seconds; `nil` for a cookie that ends with the browser.
    mutating func setCookie(
        _ name: String, _ value: String, path: String = "/", sameSite: String, maxAge: Int? = nil,
        isSecure: Bool = false
    ) {
        var text = "\(name)=\(value); Path=\(path); HttpOnly; SameSite=\(sameSite)"
        if let maxAge { text += "; Max-Age=\(maxAge)" }
        if isSecure { text += "; Secure" }
        append("Set-Cookie", text)
    }
}
