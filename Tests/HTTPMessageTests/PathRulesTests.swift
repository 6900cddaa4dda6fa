import HTTPMessage
import Testing

@Suite("Path rules")
struct PathRulesTests {
    private func isAmbiguous(_ path: String) -> Bool {
        let bytes = wire(path)
        return PathRules.isAmbiguous(bytes.span)
    }

    private func matches(_ prefix: String, _ path: String) -> Bool {
        let bytes = wire(path)
        return PathRules.matches(prefix: wire(prefix), path: bytes.span)
    }

    @Test(
        "paths that servers resolve differently are ambiguous",
        arguments: [
            Row("RFC 3986 5.2.4", "/a/../b", true), Row("RFC 3986 5.2.4", "/a/./b", true),
            Row("RFC 3986 5.2.4, at the end", "/a/..", true), Row("RFC 3986 5.2.4, at the end", "/a/.", true),
            Row("RFC 3986 5.2.4, before the query", "/a/..?b", true), Row("RFC 3986 5.2.4, first", "/../a", true),
            Row("RFC 3986 6.2.2.2", "/a/%2e%2e/b", true), Row("RFC 3986 6.2.2.2", "/a/%2E./b", true),
            Row("RFC 3986 6.2.2.2", "/a/.%2e", true), Row("RFC 3986 6.2.2.2, one letter", "/%61dmin", true),
            Row("RFC 3986 6.2.2.2, digit", "/v%31/", true), Row("RFC 3986 6.2.2.2, hyphen", "/a%2Db", true),
            Row("empty segment", "//a", true), Row("empty segment", "/a//b", true), Row("empty segments", "/a//", true),
            Row("parameters (CVE-2020-5902)", "/a/..;/b", true), Row("parameters", "/a;x=1/b", true),
            Row("encoded parameters", "/a%3bx", true), Row("encoded slash (CVE-2021-41773)", "/a%2f..%2fb", true),
            Row("encoded slash", "/a%2Fb", true), Row("encoded backslash", "/a%5cb", true),
            Row("backslash", "/a\\b", true),
            Row("encoded NUL", "/a%00", true), Row("encoded CR LF", "/a%0d%0aX:%201", true), Row("DEL", "/a%7f", true),
            Row("double encoding (CVE-2021-42013)", "/%252e%252e/", true), Row("double encoding", "/a%25%32%65", true),
            Row("double encoding", "/a%252fb", true), Row("bad escape", "/a%", true), Row("bad escape", "/a%2", true),
            Row("bad escape", "/a%zz", true), Row("bad escape", "/a%u002e", true), Row("bad escape", "/100%?x", true),
            Row("overlong UTF-8 (CVE-2000-0884)", "/%c0%ae%c0%ae/", true), Row("overlong UTF-8", "/%c1%9c", true),
            Row("overlong UTF-8", "/%e0%80%ae", true), Row("overlong UTF-8", "/%f0%80%80%ae", true),
            Row("raw space", "/a b", true), Row("raw non-ASCII", "/\u{C3}\u{A4}", true),
            Row("raw control", "/\u{1}", true),
        ])
    func ambiguous(row: Row<Bool>) {
        #expect(isAmbiguous(row.input))
    }

    @Test(
        "plain paths are not ambiguous",
        arguments: [
            "/", "", "*", "/a", "/a/", "/a/b.c", "/.well-known/x", "/..a", "/a..", "/...", "/a.b..c/", "/%7Euser",
            "/a%20b",
            "/caf%C3%A9", "/%e2%82%ac", "/%40me", "/a:b@c!$&'()*+,=~-_", "/a%2Cb", "/100%25", "/100%25/x", "/a%25zz",
            "/a?../..//;%2f%", "?a", "/?//", "/a%3fb", "/{id}", "/%E0%A4%85", "/%F0%9F%98%80",
        ])
    func plain(path: String) {
        #expect(!isAmbiguous(path))
    }

    @Test(
        "prefixes match whole segments, with or without a slash at the end",
        arguments: [
            Row("/v1", "/v1", true), Row("/v1", "/v1/", true), Row("/v1", "/v1/x", true), Row("/v1", "/v1?x", true),
            Row("/v1", "/v10", false), Row("/v1", "/v", false), Row("/v1", "/", false), Row("/v1", "", false),
            Row("/v1", "/V1", false), Row("/v1", "/x/v1", false), Row("/v1", "/v1x/", false),
            Row("/v1/", "/v1", true), Row("/v1/", "/v1/", true), Row("/v1/", "/v1/x", true), Row("/v1/", "/v1?x", true),
            Row("/v1/", "/v10", false), Row("/", "/", true), Row("/", "/x", true), Row("/", "", true),
            Row("/", "?x", true),
            Row("", "/x", true), Row("/v1", "?/v1", false), Row("/a/b", "/a?/b", false), Row("/a/b", "/a/b/c", true),
            Row("/@me", "/%40me", true), Row("/%40me", "/@me/x", true), Row("/~u", "/%7eu", true),
            Row("/~u", "/%7Eu", true),
            Row("/caf%C3%A9", "/caf%c3%a9", true), Row("/a/b", "/a%2fb", false), Row("/a", "/a%3fb", false),
            Row("/a b", "/a%20b", true), Row("/a%25b", "/a%25b", true), Row("/a%", "/a%", true),
            Row("/a%2", "/a", false),
        ])
    func prefixes(row: Row<Bool>) {
        #expect(matches(row.source, row.input) == row.expected)
    }
}
