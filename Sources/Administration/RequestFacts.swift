import HTML
import HTTPTypes
import Heimdallr
import Hummingbird
import WireText

/// What the administration wants to know of a request.
extension Request {
    /// Host comes as the authority; a second one would stay a field.
    var hosts: [String] {
        let fields = Self.hostName.map { headers[values: $0] } ?? []
        return (head.authority.map { [$0] } ?? []) + fields
    }

    /// Every value of Sec-Fetch-Site.
    var sites: [String] { Self.siteName.map { headers[values: $0] } ?? [] }

    /// A browser goes to a page of its own, not into a frame and not on behalf of a script (Fetch Metadata).
    var isNavigation: Bool {
        guard method == .get || method == .head, headers[.origin] == nil else { return false }
        return Self.value(headers, "Sec-Fetch-Mode") == "navigate"
            && Self.value(headers, "Sec-Fetch-Dest") == "document"
    }

    /// By name; of two with one name the first counts, which is the one with the longer path (RFC 6265 section 5.4).
    var cookies: [String: String] {
        var cookies: [String: String] = [:]
        for line in headers[values: .cookie] {
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
    var wantsPlainText: Bool { headers[.accept] == "text/plain" }

    /// The value of the one Authorization field that is there.
    var bearerToken: Secret? {
        let fields = headers[values: .authorization]
        guard fields.count == 1 else { return nil }
        let parts = fields[0].split(separator: " ", maxSplits: 1)
        guard parts.count == 2, parts[0].lowercased() == "bearer" else { return nil }
        return Secret(String(parts[1]))
    }

    /// The body, at most as long as `ConnectionGuard` lets it be.
    func text() async -> String? {
        guard let buffer = try? await body.collect(upTo: ConnectionGuard.maxBody) else { return nil }
        return String(buffer: buffer)
    }

    /// The fields of a form (application/x-www-form-urlencoded); `nil` when it is none.
    func form() async -> [String: String]? {
        guard let type = headers[.contentType]?.lowercased(),
            type == "application/x-www-form-urlencoded" || type.hasPrefix("application/x-www-form-urlencoded;"),
            let text = await text()
        else { return nil }
        // Of two fields with one name it is not known which is meant.
        return FormText.fields(text.utf8)
    }

    private static func value(_ headers: HTTPFields, _ name: String) -> String? {
        HTTPTypes.HTTPField.Name(name).flatMap { headers[$0] }
    }

    private static let siteName = HTTPTypes.HTTPField.Name("Sec-Fetch-Site")
    private static let hostName = HTTPTypes.HTTPField.Name("Host")
}

extension Response {
    /// A page of ours, which loads our own style and script and nothing else.
    /// - Parameter sendsForms: then its own address may be told to ourselves, or Origin would be `null` (Fetch standard,
    ///   "append a request Origin header").
    static func page(_ status: HTTPResponse.Status, _ html: HTML, sendsForms: Bool = false) -> Response {
        var response = Response.content(status, "text/html; charset=utf-8", html.text)
        response.set(
            "Content-Security-Policy",
            "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
                + "form-action 'self'; base-uri 'none'; frame-ancestors 'none'")
        if sendsForms { response.set("Referrer-Policy", "same-origin") }
        return response
    }

    /// See Other (RFC 9110 section 15.4.4): asked for by GET, whatever this was.
    static func redirect(to url: String) -> Response {
        Response(status: .seeOther, headers: [.location: url], body: ResponseBody())
    }

    mutating func set(_ name: String, _ value: String) {
        if let name = HTTPTypes.HTTPField.Name(name) { headers[name] = value }
    }

    /// - Parameter maxAge: in seconds; `nil`: as long as the browser runs.
    mutating func setCookie(
        _ name: String, _ value: String, path: String = "/", sameSite: String, maxAge: Int? = nil,
        isSecure: Bool = false
    ) {
        var text = "\(name)=\(value); Path=\(path); HttpOnly; SameSite=\(sameSite)"
        if let maxAge { text += "; Max-Age=\(maxAge)" }
        if isSecure { text += "; Secure" }
        if let name = HTTPTypes.HTTPField.Name("Set-Cookie") {
            headers.append(HTTPTypes.HTTPField(name: name, value: text))
        }
    }
}
