import HTML
import HTTPServer
import Heimdallr
import Reactor
import WireText

/// What the administration wants to know of a request.
extension ServerRequest {
    /// The Host field, and the target's own host where that is another one.
    var hosts: [String] {
        let hosts = values("Host")
        let asked = authority.lowercased()
        return asked.isEmpty || hosts.contains { $0.lowercased() == asked } ? hosts : hosts + [authority]
    }

    /// Every value of Sec-Fetch-Site.
    var sites: [String] { values("Sec-Fetch-Site") }

    /// The address that it came from, for the log and the limits.
    var caller: String { peerAddress.map { $0.hostWithoutMapping } ?? "a local socket" }

    /// A browser goes to a page of its own, not into a frame and not on behalf of a script (Fetch Metadata).
    var isNavigation: Bool {
        guard method == "GET" || method == "HEAD", values("Origin").isEmpty else { return false }
        return value("Sec-Fetch-Mode") == "navigate" && value("Sec-Fetch-Dest") == "document"
    }

    /// The first parameter of this name in the query.
    func parameter(_ name: String) -> String? {
        for pair in (query ?? "").split(separator: "&") {
            let parameter = FormText.pair(pair.utf8)
            if parameter.name == name { return parameter.value }
        }
        return nil
    }

    /// Whether the query has this word, as `?word`, `?word=` or `?word=true`.
    func asksFor(_ word: String) -> Bool {
        guard let value = parameter(word) else { return false }
        return value != "false" && value != "0"
    }

    /// By name; of two with one name the first counts, which is the one with the longer path (RFC 6265 section 5.4).
    var cookies: [String: String] {
        var cookies: [String: String] = [:]
        for line in values("Cookie") {
            for pair in line.split(separator: ";") {
                let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
                guard parts.count == 2 else { continue }
                let name = String(parts[0].drop { $0 == " " })
                if cookies[name] == nil { cookies[name] = String(parts[1]) }
            }
        }
        return cookies
    }

    /// Wants a sentence, not a page.
    var wantsPlainText: Bool { value("Accept") == "text/plain" }

    /// The value of the one Authorization field that is there.
    var bearerToken: Secret? {
        let fields = values("Authorization")
        guard fields.count == 1 else { return nil }
        let parts = fields[0].split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return Secret(String(parts[1]))
    }

    /// Of its body.
    var text: String { String(decoding: body, as: UTF8.self) }

    /// The fields of a form (application/x-www-form-urlencoded); `nil` when it is none.
    var form: [String: String]? {
        guard let type = value("Content-Type")?.lowercased(),
            type == "application/x-www-form-urlencoded" || type.hasPrefix("application/x-www-form-urlencoded;")
        else { return nil }
        // Of two fields with one name it is not known which is meant.
        return FormText.fields(text.utf8)
    }
}

extension SocketAddress {
    /// Without the prefix that an IPv4 address has at a listener for both.
    fileprivate var hostWithoutMapping: String { NumericAddress(self)?.socketAddress(port: 0).host ?? host }
}

extension ServerResponse {
    /// A page of ours, which loads our own style and script and nothing else.
    /// - Parameter sendsForms: then its own address may be told to ourselves, or Origin would be `null` (Fetch standard,
    ///   "append a request Origin header").
    static func page(_ status: Int, _ html: HTML, sendsForms: Bool = false) -> ServerResponse {
        var response = ServerResponse(status: status, type: "text/html; charset=utf-8", html.text)
        response.set(
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
        if sendsForms { response.set("Referrer-Policy", "same-origin") }
        return response
    }

    /// See Other (RFC 9110 section 15.4.4): asked for by GET, whatever this was.
    static func redirect(to url: String) -> ServerResponse {
        ServerResponse(status: 303, fields: [("Location", url)])
    }

    /// - Parameter maxAge: in seconds; `nil`: as long as the browser runs.
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
