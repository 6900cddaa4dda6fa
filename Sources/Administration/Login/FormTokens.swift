import Cryptography
import HTML
import HTTPServer
import Heimdallr
import WireText

/// Tokens against forged forms. Each browser has a cookie, and each form has an HMAC of that cookie, by a key of this
/// process. Another server on this host could set the cookie, but could not make the HMAC.
struct FormTokens: Sendable {
    /// Name of the cookie. Proxies on the same host share it.
    static let cookie = "heimdallr-browser"

    private let key: [UInt8]

    /// Makes a key from the kernel's random bytes, because libcrypto's generator is not seeded yet at the start.
    init() {
        var generator = SystemRandomNumberGenerator()
        key = (0..<32).map { _ in UInt8(truncatingIfNeeded: generator.next()) }
    }

    /// Whether a cookie has the form of our identifiers.
    static func isPlausible(_ cookie: String) -> Bool {
        cookie.utf8.count == 22 && cookie.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-_".utf8.contains($0) }
    }

    /// Returns the fields of a form that this process made for the browser; `nil` for any other form.
    func fields(of request: ServerRequest) -> [String: String]? {
        guard let fields = request.form, accepts(fields["csrf"], for: request.cookies[Self.cookie]) else { return nil }
        return fields
    }

    /// Makes a page with forms. A browser without our cookie gets one.
    /// - Parameter html: receives the forms' token; `nil` only if no random numbers are available.
    func page(
        _ status: Int, for request: ServerRequest, toOtherOrigins: Bool = false, _ html: (String?) async -> HTML
    ) async -> ServerResponse {
        let known = request.cookies[Self.cookie].flatMap { Self.isPlausible($0) ? $0 : nil }
        let cookie = known ?? (try? RandomBytes.identifier())
        let html = await html(cookie.flatMap { token(for: $0) })
        var response = ServerResponse.page(status, html, sendsForms: true, toOtherOrigins: toOtherOrigins)
        if known == nil, let cookie { response.setCookie(Self.cookie, cookie, sameSite: "Lax") }
        return response
    }

    func token(for cookie: String) -> String? {
        (try? Digest.hmacSHA256(Array(cookie.utf8), key: key)).map { Base64.encode($0, alphabet: .url) }
    }

    func accepts(_ token: String?, for cookie: String?) -> Bool {
        guard let token, let cookie, Self.isPlausible(cookie), let expected = self.token(for: cookie) else {
            return false
        }
        return Secret(token) == Secret(expected)
    }
}
