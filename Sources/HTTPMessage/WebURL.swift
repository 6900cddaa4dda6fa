import WireText

/// An absolute http or https URL (RFC 3986, section 4.3), taken apart once for every reader.
///
/// Strict by default, because no two programs may read different hosts: refuses control characters, spaces, bytes above
/// 0x7E, a backslash (browsers read it as a slash), each host that `Authority` refuses, user information and a fragment.
/// An option allows one of these. Path and query stay as written.
public struct WebURL: Sendable, Hashable {
    public struct Options: OptionSet, Sendable {
        public let rawValue: UInt8
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// `user:password@` before the host, for addresses of next proxies. The last `@` ends it.
        public static let userInfo = Options(rawValue: 1)
        /// `#…`, which is dropped: it is never sent (RFC 9110, section 7.1).
        public static let fragment = Options(rawValue: 2)
    }

    public enum Fault: Error, Equatable {
        /// A character that no URL has.
        case character
        /// No `://`.
        case relative
        /// A scheme other than http and https.
        case scheme
        /// No valid host and port. Value: the text in their place.
        case authority(String)
        case userInfo, fragment
    }

    public let scheme: Scheme
    /// Canonical, with the port as written.
    public let authority: Authority
    /// `nil` without `@`.
    public let userInfo: Substring?
    /// Scheme and authority, as written.
    public let start: Substring
    /// As written: empty, or with a `/` at its start.
    public let path: Substring
    /// As written, without the `?`.
    public let query: Substring?

    public init(_ text: String, allowing options: Options = []) throws(Fault) {
        guard text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != ASCII.backslash }) else { throw .character }
        guard let separator = text.firstRange(of: "://"), separator.lowerBound > text.startIndex else {
            throw .relative
        }
        guard let scheme = Scheme(rawValue: text[..<separator.lowerBound].lowercased()) else { throw .scheme }
        let hash = text[separator.upperBound...].firstIndex(of: "#")
        let rest = text[separator.upperBound..<(hash ?? text.endIndex)]
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        let question = rest[end...].firstIndex(of: "?")
        let at = rest[..<end].lastIndex(of: "@")
        let host = rest[(at.map(rest.index(after:)) ?? rest.startIndex)..<end]
        guard let authority = try? Authority(parsing: String(host)) else { throw .authority(String(host)) }
        guard at == nil || options.contains(.userInfo) else { throw .userInfo }
        guard hash == nil || options.contains(.fragment) else { throw .fragment }
        self.scheme = scheme
        self.authority = authority
        userInfo = at.map { rest[..<$0] }
        start = text[..<end]
        path = rest[end..<(question ?? rest.endIndex)]
        query = question.map { rest[$0...].dropFirst() }
    }

    /// A URL to which a client may send its secrets: https, or http with the operator's permission.
    public init?(_ text: String, allowPlaintext: Bool) {
        guard let url = try? WebURL(text), allowPlaintext || url.scheme == .https else { return nil }
        self = url
    }

    /// Returns the scheme at the start of a text; `nil` if this is no URL of the web. Checks nothing else.
    public static func scheme(of text: some StringProtocol) -> Scheme? {
        text.firstIndex(of: ":").flatMap { colon in
            text[colon...].hasPrefix("://") ? Scheme(rawValue: text[..<colon].lowercased()) : nil
        }
    }

    /// Scheme, host and port in one form, the same for all URLs of a server (RFC 6454, section 6.1).
    public var origin: String { "\(scheme.rawValue)://\(authority.without(defaultPortOf: scheme))" }

    /// Returns the origin of a URL; for any other text, the text in lower case. Never a user's name.
    public static func origin(of text: String) -> String {
        (try? WebURL(text, allowing: [.userInfo, .fragment]))?.origin ?? text.lowercased()
    }

    /// Port to connect to.
    public var port: UInt16 { authority.port(for: scheme) }

    /// Target of a request in origin form (RFC 9112, section 3.2.1).
    public var target: String { (path.isEmpty ? "/" : path) + (query.map { "?\($0)" } ?? "") }

    /// Whether browsers keep scheme and authority as written: in lower case, and in the one form of each address.
    public var isCanonical: Bool { start.utf8.elementsEqual("\(scheme.rawValue)://\(authority)".utf8) }
}
