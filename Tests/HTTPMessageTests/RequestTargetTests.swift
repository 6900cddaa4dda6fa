import HTTPMessage
import Testing

@Suite("Request targets")
struct RequestTargetTests {
    /// A target's form with its parts as text; nil where the head or the target is refused.
    private func form(_ target: String, method: String = "GET") -> [String]? {
        let message = "\(method) \(target) HTTP/1.1\r\nHost: other\r\n\r\n"
        let bytes = wire(message)
        var head = RequestHead()
        guard case .complete = outcome(&head, bytes) else { return nil }
        do throws(MessageError) {
            switch try RequestTarget(parsing: bytes.span, head: head) {
            case .origin(let path): return ["origin", path.text(in: message)]
            case .absolute(let scheme, let authority, let path):
                return [scheme.rawValue, authority.text(in: message), path.text(in: message)]
            case .authority(let authority): return ["authority", authority.text(in: message)]
            case .asterisk: return ["asterisk"]
            }
        } catch {
            #expect(error.status == 400)
            return nil
        }
    }

    static let acceptedRows: [Row<[String]>] = [
        Row("RFC 9112 3.2.1", "/", ["origin", "/"]),
        Row("RFC 9112 3.2.1", "/a/b?c=d", ["origin", "/a/b?c=d"]),
        Row("RFC 9112 3.2.1, two slashes are a path", "//evil/x", ["origin", "//evil/x"]),
        Row("RFC 9112 3.2.1, byte for byte", "/a/../%2e%2E/%zz//;x=1", ["origin", "/a/../%2e%2E/%zz//;x=1"]),
        Row("curl sends JSON as typed", "/q?f={\"a\":[1|2^3,`<>`]}", ["origin", "/q?f={\"a\":[1|2^3,`<>`]}"]),
        Row("a backslash in the query", "/q?r=\\d+\\", ["origin", "/q?r=\\d+\\"]),
        Row("a URL in the path", "/http://b/c", ["origin", "/http://b/c"]),
        Row("an at sign in the path", "/@me:x", ["origin", "/@me:x"]),
        Row("RFC 9112 3.2.2", "http://a.b:8080/x?y", ["http", "a.b:8080", "/x?y"]),
        Row("RFC 3986 3.1, scheme in capitals", "HTTP://A/x", ["http", "A", "/x"]),
        Row("https", "https://a/x", ["https", "a", "/x"]),
        Row("RFC 3986 3.3, empty path", "http://a", ["http", "a", ""]),
        Row("RFC 3986 3.3, query without path", "http://a?x=/y@z", ["http", "a", "?x=/y@z"]),
        Row("IPv6", "http://[::1]:80/", ["http", "[::1]:80", "/"]),
        Row("an at sign behind the authority", "http://a/@b", ["http", "a", "/@b"]),
    ]

    @Test("origin-form and absolute-form are taken apart", arguments: acceptedRows)
    func accepted(row: Row<[String]>) {
        #expect(form(row.input) == row.expected)
    }

    @Test(
        "targets that two parsers could read differently are refused",
        arguments: [
            Row("RFC 9112 3.2, no form", "a", 400), Row("RFC 9112 3.2, no form", "a/b", 400),
            Row("RFC 9112 3.2, no form", "?a", 400), Row("RFC 9112 3.2, no form", "a:80", 400),
            Row("RFC 9112 3.2.4, asterisk with GET", "*", 400), Row("RFC 9112 3.2.4, asterisk path", "*/a", 400),
            Row("RFC 9110 7.1, fragment", "/a#b", 400), Row("RFC 9110 7.1, fragment", "http://a/#", 400),
            Row("RFC 9110 7.1, fragment behind authority", "http://a#@b/", 400),
            Row("RFC 9110 4.2.4, userinfo", "http://u@a/", 400),
            Row("RFC 9110 4.2.4, userinfo", "http://u:p@a/", 400),
            Row("RFC 9110 4.2.4, userinfo", "http://u:80@a/", 400),
            Row("RFC 9110 4.2.4, empty userinfo", "http://@a/", 400),
            Row("RFC 9110 4.2.1, empty host", "http:///a", 400), Row("RFC 9110 4.2.1, empty host", "http://", 400),
            Row("RFC 9110 4.2.1, empty host", "http://?a", 400), Row("empty host with port", "http://:80/", 400),
            Row("RFC 3986 3, one slash", "http:/a", 400), Row("RFC 3986 3, no slash", "http:a", 400),
            Row("backslashes", "http:\\\\a/", 400), Row("backslash ends the authority", "http://a\\@b/", 400),
            Row("backslash in the path", "/a\\..\\b", 400), Row("backslash in the path", "http://a/\\b", 400),
            Row("other scheme", "ftp://a/", 400), Row("other scheme", "ws://a/", 400), Row("file", "file:///etc", 400),
            Row("gopher (SSRF)", "gopher://a/_x", 400), Row("javascript", "javascript:1", 400),
            Row("RFC 3986 3.2.3, port", "http://a:b/", 400), Row("RFC 3986 3.2.3, port", "http://a:-1/", 400),
            Row("RFC 3986 3.2.3, port", "http://a:65536/", 400), Row("port 0", "http://a:0/", 400),
            Row("RFC 3986 3.2.2, percent", "http://%61/", 400), Row("RFC 3986 3.2.2, percent", "http://a%00b/", 400),
            Row("RFC 3986 3.2.2, percent slash", "http://a%2fb/", 400),
            Row("RFC 6874, zone", "http://[fe80::1%25eth0]/", 400), Row("IPvFuture", "http://[v1.a]/", 400),
            Row("brackets in the middle", "http://a[b]/", 400), Row("text behind brackets", "http://[::1]a/", 400),
            Row("CVE-2021-22901 style numeric host", "http://2130706433/", 400),
            Row("octal", "http://0177.0.0.1/", 400),
            Row("two hosts", "http://a,b/", 400), Row("semicolon", "http://a;b/", 400),
            Row("wildcard", "http://*/", 400),
        ])
    func refuses(row: Row<Int>) {
        #expect(form(row.input) == nil)
    }

    @Test("asterisk-form is for OPTIONS, authority-form for CONNECT (RFC 9112 3.2.3, 3.2.4)")
    func otherForms() {
        #expect(form("*", method: "OPTIONS") == ["asterisk"])
        #expect(form("/", method: "OPTIONS") == ["origin", "/"])
        #expect(form("http://a", method: "OPTIONS") == ["http", "a", ""])
        #expect(form("**", method: "OPTIONS") == nil)
        #expect(form("a:443", method: "CONNECT") == ["authority", "a:443"])
        #expect(form("[::1]:443", method: "CONNECT") == ["authority", "[::1]:443"])
        for bad in ["a", "a:", "*", "/", "http://a:443", "https://a:443/", "u@a:443", "a:443/x", "a:443?x", ":443"] {
            #expect(form(bad, method: "CONNECT") == nil)
        }
        #expect(form("*", method: "options") == nil)
        #expect(form("a:443", method: "GET") == nil)
    }
}
