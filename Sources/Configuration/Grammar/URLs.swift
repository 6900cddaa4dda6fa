import HTTPMessage
import WireText

extension WebURL {
    /// Reads an http or https URL.
    /// - Parameters:
    ///   - wanted: what the message about another scheme says to write.
    ///   - user: advice, appended to the message about a user name.
    ///   - query: advice, appended to the message about a query; `nil` if a query is allowed.
    init(
        value text: String, example: String, wanted: String = "an https:// URL", user: String = "",
        query: String? = nil, allowing options: Options = []
    ) throws(BadValue) {
        let advice = BadValue("write an absolute URL such as \(example)", matching: #"^[Hh][Tt][Tt][Pp][Ss]?://\S+$"#)
        guard !text.utf8.contains(0x20) else {
            throw BadValue("write the URL without spaces; in a path, write %20 for a space")
        }
        if let name = Template.braced(in: text) { throw BadValue("write your own value in place of \(name)") }
        guard !text.utf8.contains(where: { "\"<>^`{|}".utf8.contains($0) }) else { throw advice }
        do throws(Fault) { try self.init(text, allowing: options) } catch {
            switch error {
            case .character, .relative: throw advice
            case .scheme: throw BadValue("write \(wanted)")
            case .authority(let host): throw Grammar.portFault(host) ?? advice
            case .userInfo: throw BadValue("write the URL without a user name\(user)", quotes: false)
            case .fragment: throw BadValue("write the URL without a fragment (from # on)")
            }
        }
        if let query, self.query != nil {
            throw BadValue("write the URL without a query (from ? on)\(query)", quotes: query.isEmpty)
        }
    }
}

extension Grammar {
    static func upstreamURL(_ text: String) throws(BadValue) -> UpstreamURL {
        let parts = try WebURL(
            value: text, example: "https://api.example.com", user: "; the token comes from `client`", query: "")
        var path = parts.path
        while path.hasSuffix("/") { path.removeLast() }
        if !path.isEmpty { try checkPath(path) }
        let authority = parts.authority.without(defaultPortOf: parts.scheme)
        return .init(scheme: parts.scheme, authority: authority, path: String(path))
    }

    /// A token endpoint or another http or https URL. A query is allowed, a fragment is not (RFC 6749, section 3.2).
    static func endpoint(_ text: String) throws(BadValue) -> String {
        let parts = try WebURL(
            value: text, example: "https://idp.example.com/token", user: "; use `client_id` and `client_secret`")
        try checkEscapes(parts.path)
        return text
    }

    /// Checks that browsers keep scheme and host as written, because they are compared with what a browser sends.
    static func checkSpelling(_ url: WebURL, _ part: String) throws(BadValue) {
        guard url.start == url.start.lowercased() else {
            throw BadValue("write \(part) in lower case, as browsers do")
        }
        guard url.isCanonical else {
            throw BadValue("write \(url.scheme.rawValue)://\(url.authority), as browsers do")
        }
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
            let parts: WebURL
            do throws(BadValue) {
                parts = try WebURL(
                    value: text, example: "", wanted: "http://host:port, environment or none", allowing: .userInfo)
            } catch {
                throw error.fits == nil ? BadValue(error.message, quotes: false) : advice
            }
            guard parts.path.isEmpty || parts.path == "/", parts.query == nil else { throw advice }
            guard parts.authority.port != nil else {
                throw BadValue("write the port too, as in http://proxy.example.com:3128", quotes: false)
            }
            return .url(text)
        }
    }

    /// The URL of a next proxy, without the words.
    static func nextProxyURL(_ text: String) throws(BadValue) -> String {
        guard case .url(let url, _) = try nextProxy(text) else {
            throw BadValue("write http://host:port", quotes: false)
        }
        return url
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
        guard !PathRules.hasDotSegment(Array(path.utf8).span) else {
            throw BadValue("write the path without . and .. segments")
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
