internal import HTTPMessage

/// Redirect URI of a login: RFC 6749 section 3.1.2, RFC 8252 section 7. Compared byte by byte.
package struct RedirectURI: Sendable, Equatable {
    /// The URI before its query.
    private let base: Substring
    /// The pairs of the URI's own query, unchanged.
    private let fixed: [Substring]

    /// Names of the parameters that a server adds to the query.
    package static let answerNames: Set<Substring> = [
        "code", "state", "iss", "error", "error_description", "error_uri", "access_token", "token_type", "expires_in",
        "scope",
    ]

    /// - Throws: `LoginError.badRedirectURI`, also for a scheme or host that a browser would write in another way.
    init(_ text: String) throws(LoginError) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }), text.utf8.count <= 2048, !text.contains("#"),
            let colon = text.firstIndex(of: ":")
        else { throw .badRedirectURI }
        let scheme = text[..<colon]
        guard let first = scheme.utf8.first, (0x61...0x7A).contains(first),
            scheme.utf8.allSatisfy({
                (0x61...0x7A).contains($0) || (0x30...0x39).contains($0) || "+-.".utf8.contains($0)
            }), text.index(after: colon) < text.endIndex
        else { throw .badRedirectURI }
        if scheme == "http" || scheme == "https" {
            guard let url = try? WebURL(text), url.isCanonical,
                url.scheme == .https || url.authority.host.isThisMachine
            else { throw .badRedirectURI }
        }
        (base, fixed) = Self.split(text)
        guard !fixed.contains(where: { pair in Self.answerNames.contains(pair.prefix { $0 != "=" }) }) else {
            throw .badRedirectURI
        }
    }

    /// Splits a URI before its query. An empty path becomes `/`, as browsers write it. Nothing else is normalized.
    private static func split(_ text: String) -> (Substring, [Substring]) {
        let mark = text.firstIndex(of: "?") ?? text.endIndex
        var base = text[..<mark]
        if let url = try? WebURL(String(base)), url.path.isEmpty { base += "/" }
        let query = mark == text.endIndex ? "" : text[text.index(after: mark)...]
        return (base, query.split(separator: "&"))
    }

    /// Returns the pairs that the server has added to the query, and the fragment.
    /// - Throws: `LoginError.foreignRedirect` if `url` is not the redirect URI.
    func answer(in url: String) throws(LoginError) -> (query: [Substring], fragment: Substring?) {
        let hash = url.firstIndex(of: "#")
        let fragment = hash.map { url[url.index(after: $0)...] }
        let (foreign, pairs) = Self.split(String(url[..<(hash ?? url.endIndex)]))
        guard foreign.utf8.elementsEqual(base.utf8) else { throw .foreignRedirect }
        var rest = pairs
        for pair in fixed {
            guard let index = rest.firstIndex(where: { $0.utf8.elementsEqual(pair.utf8) }) else {
                throw .foreignRedirect
            }
            rest.remove(at: index)
        }
        return (rest, fragment)
    }
}
