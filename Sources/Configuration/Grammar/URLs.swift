import HTTPMessage
import WireText

/// An absolute URL, split by the generic syntax of RFC 3986. Path, query and fragment stay as written.
struct URLParts {
    var scheme: String
    var userinfo: Substring?
    var authority: Authority
    var path: Substring
    var query: Substring?
    var fragment: Substring?

    init(_ text: String, example: String) throws(BadValue) {
        let advice = BadValue("write an absolute URL such as \(example)", matching: #"^[Hh][Tt][Tt][Pp][Ss]?://\S+$"#)
        guard !text.utf8.contains(0x20) else {
            throw BadValue("write the URL without spaces; in a path, write %20 for a space")
        }
        if let name = Template.braced(in: text) { throw BadValue("write your own value in place of \(name)") }
        guard Grammar.isVisible(text), !text.utf8.contains(where: { "\"<>\\^`{|}".utf8.contains($0) }) else {
            throw advice
        }
        guard let separator = text.firstRange(of: "://"), separator.lowerBound > text.startIndex else { throw advice }
        scheme = text[..<separator.lowerBound].lowercased()
        var rest = text[separator.upperBound...]
        if let hash = rest.firstIndex(of: "#") {
            fragment = rest[hash...].dropFirst()
            rest = rest[..<hash]
        }
        if let mark = rest.firstIndex(of: "?") {
            query = rest[mark...].dropFirst()
            rest = rest[..<mark]
        }
        let end = rest.firstIndex(of: "/") ?? rest.endIndex
        path = rest[end...]
        var host = rest[..<end]
        if let at = host.lastIndex(of: "@") {
            userinfo = host[..<at]
            host = host[at...].dropFirst()
        }
        guard let authority = try? Authority(parsing: String(host)) else { throw Grammar.portFault(host) ?? advice }
        self.authority = authority
    }

    /// Reads an http or https URL.
    /// - Parameters:
    ///   - wanted: what the message about another scheme says to write.
    ///   - user: advice, appended to the message about a user name.
    ///   - query: advice, appended to the message about a query; `nil` if a query is allowed.
    init(
        web text: String, example: String, wanted: String = "an https:// URL", user: String = "", query: String? = nil
    ) throws(BadValue) {
        try self.init(text, example: example)
        guard self.scheme == "https" || self.scheme == "http" else { throw BadValue("write \(wanted)") }
        guard userinfo == nil else { throw BadValue("write the URL without a user name\(user)", quotes: false) }
        if let query, self.query != nil {
            throw BadValue("write the URL without a query (from ? on)\(query)", quotes: query.isEmpty)
        }
        guard fragment == nil else { throw BadValue("write the URL without a fragment (from # on)") }
    }

    /// Port to connect to.
    var port: UInt16 { authority.port ?? (scheme == "https" ? 443 : 80) }
}

extension Grammar {
    /// The URL of an upstream.
    static func upstreamURL(_ text: String) throws(BadValue) -> UpstreamURL {
        let parts = try URLParts(
            web: text, example: "https://api.example.com", user: "; the token comes from `client`", query: "")
        let scheme: UpstreamURL.Scheme = parts.scheme == "https" ? .https : .http
        var path = parts.path
        while path.hasSuffix("/") { path.removeLast() }
        if !path.isEmpty { try checkPath(path) }
        var authority = parts.authority
        if authority.port == (scheme == .https ? 443 : 80) { authority.port = nil }
        return .init(scheme: scheme, authority: authority, path: String(path))
    }

    /// A token endpoint or another http or https URL. A query is allowed, a fragment is not (RFC 6749, section 3.2).
    static func endpoint(_ text: String) throws(BadValue) -> String {
        let parts = try URLParts(
            web: text, example: "https://idp.example.com/token", user: "; use `client_id` and `client_secret`")
        try checkEscapes(parts.path)
        return text
    }

    /// The next proxy: a URL, `environment` or `none`.
    static func nextProxy(_ text: String) throws(BadValue) -> NextProxy {
        switch text {
        case "none": return .none
        case "environment": return .environment
        default:
            // Messages do not quote the URL, because it may contain a password.
            let advice = BadValue(
                "write http://host:port, environment or none", quotes: false,
                fits: .any([
                    .words(["none", "environment"]), .text(matching: #"^[Hh][Tt][Tt][Pp][Ss]?://\S+:[0-9]+/?$"#),
                ]))
            let parts: URLParts
            do throws(BadValue) {
                parts = try URLParts(text, example: "")
            } catch {
                throw error.fits == nil ? BadValue(error.message, quotes: false) : advice
            }
            guard parts.scheme == "http" || parts.scheme == "https" else { throw advice }
            guard parts.path.isEmpty || parts.path == "/", parts.query == nil, parts.fragment == nil else {
                throw advice
            }
            guard parts.authority.port != nil else {
                throw BadValue("write the port too, as in http://proxy.example.com:3128", quotes: false)
            }
            return .url(text)
        }
    }

    /// An absolute URI without a fragment (RFC 8707, section 2).
    static func resource(_ text: String) throws(BadValue) -> String {
        try checked(
            text, isAbsoluteURI(text) && !text.utf8.contains(0x23),
            BadValue(
                "write an absolute URI without a fragment, such as https://api.example.com",
                matching: #"^[A-Za-z][A-Za-z0-9+.-]*:[^#\s]+$"#))
    }

    /// Whether the text is a scheme, a colon, and visible ASCII. This is less strict than RFC 3986, section 4.3.
    static func isAbsoluteURI(_ text: String) -> Bool {
        guard isVisible(text), let colon = text.firstIndex(of: ":"), let first = text.utf8.first else { return false }
        return ASCII.isAlphanumeric(first) && !ASCII.isDigit(first) && text.index(after: colon) < text.endIndex
            && text[..<colon].utf8.allSatisfy { ASCII.isAlphanumeric($0) || "+-.".utf8.contains($0) }
    }

    /// The pattern of absolute URIs, for the schema.
    static let absoluteURIs = ValueKind.text(matching: #"^[A-Za-z][A-Za-z0-9+.-]*:\S+$"#)

    /// A path prefix of whole segments.
    static func pathPrefix(_ text: String) throws(BadValue) -> String {
        guard text.hasPrefix("/") else { throw BadValue("write a path that starts with /", matching: "^/") }
        guard !text.contains("?"), !text.contains("#") else {
            throw BadValue("write the path without ? and #; queries are not matched")
        }
        try checkPath(text[...])
        let segments = text.split(separator: "/")
        let kept = segments.prefix { $0 != "*" && $0 != "**" }
        return try checked(
            text, kept.count == segments.count,
            BadValue("paths are prefixes already: write /\(kept.joined(separator: "/"))"))
    }

    /// Checks the characters of a path (RFC 3986, section 3.3). Refuses dot segments: requests with them never match.
    private static func checkPath(_ path: Substring) throws(BadValue) {
        guard path.utf8.allSatisfy({ ASCII.isAlphanumeric($0) || "-._~!$&'()*+,;=:@%/".utf8.contains($0) }) else {
            throw BadValue("percent-encode spaces and other special characters of a path")
        }
        try checkEscapes(path)
        for segment in path.split(separator: "/") {
            let plain = segment.lowercased().split(separator: "%2e", omittingEmptySubsequences: false)
                .joined(separator: ".")
            guard plain != ".", plain != ".." else { throw BadValue("write the path without . and .. segments") }
        }
    }

    /// Checks that each % begins a percent-encoded octet.
    static func checkEscapes(_ path: Substring) throws(BadValue) {
        var rest = path.utf8
        while let percent = rest.firstIndex(of: 0x25) {
            rest = rest[percent...].dropFirst()
            guard rest.prefix(2).count == 2, rest.prefix(2).allSatisfy({ ASCII.hexValue($0) != nil }) else {
                throw BadValue("write %25 for a literal %")
            }
        }
    }
}
