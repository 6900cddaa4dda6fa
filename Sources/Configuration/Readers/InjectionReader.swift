import Heimdallr
import WireText

/// Reads `inject` of an upstream: an entry, or a list of entries.
struct InjectionReader {
    typealias Injection = UpstreamSettings.Injection

    private let section: Section
    private let hasClient: Bool
    private let allowsDeprecated: Bool

    /// - Parameter settings: other settings of the upstream, read before.
    init(_ section: Section, _ settings: UpstreamSettings) {
        self.section = section
        hasClient = section.has("client")
        allowsDeprecated = settings.allowDeprecated
    }

    /// Limit of entries. `EntrySet` in the proxy could hold 32.
    private static let maxEntries = 8
    private static let key = "inject"

    func read() -> [Injection] {
        section.tell(Self.key, .oneOrMore(.section { _ = read($0) }, 1...Self.maxEntries))
        guard section.has(Self.key) else {
            return hasClient ? [.header(name: "Authorization", scheme: "Bearer")] : []
        }
        guard let node = section.node(Self.key) else { return [] }
        let elements = node.elements
        guard !elements.isEmpty, elements.count <= Self.maxEntries else {
            section.error(Self.key, "write one entry or a list of up to \(Self.maxEntries)")
            return []
        }
        var injections: [(Injection, path: String)] = []
        for (index, element) in elements.enumerated() {
            let path = "\(section.path).inject" + (section.isList(Self.key) ? "[\(index)]" : "")
            guard let entry = Section(element, path: path, pattern: "upstreams.inject", section.diagnostics),
                let injection = read(entry)
            else { continue }
            if let earlier = injections.first(where: { $0.0.collides(with: injection) }) {
                section.diagnostics.error(
                    element.position,
                    "\(path): \(injection.target) is already set by \(earlier.path): write another "
                        + "\(injection.isQuery ? "parameter" : "field"), or leave one of them out")
            }
            injections.append((injection, path))
        }
        checkToken(injections.map(\.0), isComplete: injections.count == elements.count)
        return injections.map(\.0)
    }

    /// Checks that a client's token is injected, and that an injected token has a client.
    private func checkToken(_ injections: [Injection], isComplete: Bool) {
        let takesToken = injections.contains(where: \.takesToken)
        if takesToken, !hasClient {
            section.error(
                Self.key, "this injects a token: write `client` too, a `value` for a fixed key, or leave it out")
        }
        if !takesToken, hasClient, isComplete {
            section.error(
                Self.key,
                "nothing injects the client's token: add {header: Authorization, scheme: Bearer}, or leave `client` out"
            )
        }
    }

    // MARK: One entry

    private func read(_ entry: Section) -> Injection? {
        defer { entry.finish() }
        entry.tell("basic", .section { _ = readBasic($0) })
        entry.tell("sigv4", .section { _ = SigV4Reader.read($0) })
        guard let kind = ["basic", "sigv4"].first(where: entry.has) else { return readTarget(entry) }
        for key in ["header", "scheme", "query", "value"] + (kind == "basic" ? ["sigv4"] : []) {
            if entry.has(key) {
                entry.error(key, "`\(kind)` already sets Authorization: leave this key or `\(kind)` out")
            }
            _ = entry.node(key)
        }
        if kind == "sigv4" { return entry.section("sigv4").flatMap { SigV4Reader.read($0) }.map { .sigv4($0) } }
        return entry.section("basic").flatMap(readBasic)
    }

    private func readBasic(_ basic: Section) -> Injection? {
        defer { basic.finish() }
        let username = basic.textOrSecret("username", rule: InjectedValue.username)
        let password = basic.secret("password", rule: InjectedValue.password)
        basic.need("username", "password", saying: "\(basic.path): write `username`, `password` or both")
        guard basic.has("username") || basic.has("password") else { return nil }
        guard !basic.has("username") || username != nil, !basic.has("password") || password != nil else { return nil }
        return .basic(username: username, password: password)
    }

    private func readTarget(_ entry: Section) -> Injection? {
        let header = entry.value("header", Self.header)
        let scheme = entry.value("scheme") { text throws(BadValue) in
            try Grammar.checked(
                text, text.isEmpty || ASCII.isToken(text),
                BadValue(
                    "write a scheme such as Bearer, or \"\" for the bare token",
                    matching: "^[!#$%&'*+.^_`|~0-9A-Za-z-]*$"))
        }
        let query = entry.value("query") { text throws(BadValue) in
            try Grammar.checked(
                text,
                !text.isEmpty && text.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-._~".utf8.contains($0) },
                BadValue("write a parameter name such as access_token", matching: "^[A-Za-z0-9._~-]+$"))
        }
        let value = entry.secret("value", rule: InjectedValue.fieldValue)
        for (key, read) in [
            ("header", header != nil), ("scheme", scheme != nil), ("query", query != nil),
            ("value", value != nil),
        ] where entry.has(key) && !read {
            return nil
        }
        guard entry.has("query") else {
            guard entry.has("header") || !entry.has("value") else {
                entry.error("value", "nothing says where this value goes: write `header` or `query` too")
                return nil
            }
            return .header(
                name: header ?? "Authorization", scheme: scheme ?? (value == nil ? "Bearer" : ""), value: value)
        }
        for key in ["header", "scheme"] where entry.has(key) {
            entry.error(
                key,
                "a \(value == nil ? "token" : "key") goes into a header or into the query, not both: leave this or "
                    + "`query` out")
        }
        if value == nil, !allowsDeprecated {
            entry.error(
                "query",
                "a token in the query ends up in logs (RFC 9700, section 4.3.2): inject a header, or write "
                    + "`allow_deprecated: true` at this upstream")
        }
        return query.map { .query(name: $0, value: value) }
    }

    // MARK: Single values

    private static let unfitHeaders = Grammar.normalized(
        fields: Grammar.framingFields.union(["content-type", "content-encoding", "date", "range"]))

    private static func header(_ text: String) throws(BadValue) -> String {
        let name = try Grammar.headerName(text)
        return try Grammar.checked(
            name, !unfitHeaders.contains(Grammar.normalized(field: name)),
            BadValue("write a header that can carry a token, such as Authorization or X-Api-Key"))
    }

    /// A placeholder that programs can send in place of a credential.
    static func placeholder(_ text: String) throws(BadValue) -> String {
        try Grammar.checked(
            text, Grammar.isVisible(text) && text.utf8.count <= 256 && !text.utf8.contains(ASCII.percent),
            BadValue(
                "write up to 256 visible ASCII characters without spaces and %, such as PLACEHOLDER",
                matching: "^[!-$&-~]{1,256}$"))
    }
}

extension UpstreamSettings.Injection {
    /// Target for messages: `the field X-Api-Key`.
    fileprivate var target: String { isQuery ? "the parameter \(name)" : "the field \(name)" }

    fileprivate func collides(with other: Self) -> Bool {
        guard isQuery == other.isQuery else { return false }
        guard !isQuery else { return name == other.name }
        return !fields.isDisjoint(with: other.fields)
    }

    /// Names of the injected fields, normalised for comparison.
    var fields: Set<String> {
        if isQuery { return [] }
        guard case .sigv4 = self else { return [Grammar.normalized(field: name)] }
        return Grammar.normalized(
            fields: ["authorization", "x-amz-date", "x-amz-content-sha256", "x-amz-security-token"])
    }
}
