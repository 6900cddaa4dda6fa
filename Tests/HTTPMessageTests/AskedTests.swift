import HTTPMessage
import Testing

@Suite("What a log may say of a head, whole or not")
struct AskedTests {
    private func asked(_ text: String) -> (method: String, authority: String, path: String) {
        var head = RequestHead()
        let bytes = wire(text)
        _ = outcome(&head, bytes)
        let asked = head.asked(in: bytes.span)
        return (
            head.method.string(in: bytes.span), asked.authority.string(in: bytes.span),
            asked.isRoot ? "/" : asked.path.string(in: bytes.span)
        )
    }

    static let wholes: [(line: String, authority: String, path: String)] = [
        ("GET /a?secret=1 HTTP/1.1", "h.test", "/a"), ("GET http://x.test:81/a?secret=1 HTTP/1.1", "x.test:81", "/a"),
        ("GET http://x.test HTTP/1.1", "x.test", "/"), ("GET http://x.test?secret HTTP/1.1", "x.test", "/"),
        ("GET ftp://x.test/a HTTP/1.1", "x.test", "/a"), ("OPTIONS * HTTP/1.1", "h.test", "*"),
        ("GET * HTTP/1.1", "h.test", "*"), ("CONNECT x.test:443 HTTP/1.1", "x.test:443", ""),
        ("CONNECT u:secret@x.test:443 HTTP/1.1", "x.test:443", ""), ("CONNECT secret HTTP/1.1", "secret", ""),
        ("GET http://u:secret@x.test/a HTTP/1.1", "x.test", "/a"), ("GET http://u:sec/ret@x.test/a HTTP/1.1", "", ""),
        ("GET http://u:se?cret@x.test/a HTTP/1.1", "", ""), ("GET secret@x.test HTTP/1.1", "h.test", ""),
        ("GET mailto:secret HTTP/1.1", "h.test", ""),
    ]

    @Test("a log names a request without its user information and query", arguments: wholes)
    func whole(_ line: String, _ authority: String, _ path: String) {
        let found = asked("\(line)\r\nHost: h.test\r\n\r\n")
        #expect(found.authority == authority)
        #expect(found.path == path)
    }

    static let breaks: [(text: String, method: String, authority: String, path: String)] = [
        ("", "", "", ""), ("GE", "", "", ""), ("secret\r\n", "", "", ""), ("Cookie: secret\r\n", "", "", ""),
        ("GET ", "GET", "", ""), ("GET /a", "GET", "", "/a"), ("GET /a b HTTP/1.1\r\n", "GET", "", "/a"),
        ("GET /a?secret b HTTP/1.1\r\n", "GET", "", "/a"), ("GET /a#secret HTTP/1.1\r\n", "GET", "", "/a"),
        ("GET /a\u{80}b HTTP/1.1\r\n", "GET", "", "/a"), ("GET /a HTTP/3.0\r\n", "GET", "", "/a"),
        ("GET /a?q\\r#secret", "GET", "", "/a"),
        // Where the authority does not end, it may be the beginning of a user and a password.
        ("GET http://user", "GET", "", ""), ("GET http://user:12 secret@x.test/ HTTP/1.1\r\n", "GET", "", ""),
        ("GET http://x.test/a b HTTP/1.1\r\n", "GET", "x.test", "/a"),
        ("GET http://x.test#y HTTP/1.1\r\n", "GET", "", ""), ("CONNECT user:12 secret@x.test", "CONNECT", "", ""),
        ("GET /a HTTP/1.1\r\nHost: h.test\r\nX : y\r\n", "GET", "h.test", "/a"),
        ("GET /a HTTP/1.1\r\nHost: h.test\r\nHost: i.test\r\n", "GET", "h.test", "/a"),
        ("GET /a HTTP/1.1\r\nHost: u:secret@h.test\r\n", "GET", "", "/a"),
        ("POST /a HTTP/1.1\r\nHost: h.test\r\nContent-Length: x\r\n", "POST", "h.test", "/a"),
        ("OPTIONS * HTTP/1.1\nHost: h", "OPTIONS", "", ""),
    ]

    @Test("a log names the readable beginning of a request that is refused", arguments: breaks)
    func broken(_ text: String, _ method: String, _ authority: String, _ path: String) {
        let found = asked(text)
        #expect(found.method == method)
        #expect(found.authority == authority)
        #expect(found.path == path)
    }

    @Test("no piece of a request that arrives byte by byte shows its secrets")
    func pieces() {
        let bytes = wire("GET http://u:secret@x.test:8/a/b?secret HTTP/1.1\r\nHost: h.test\r\nX : y\r\n")
        var head = RequestHead()
        for length in 1...bytes.count {
            let part = Array(bytes[..<length])
            _ = outcome(&head, part)
            let asked = head.asked(in: part.span)
            for range in [asked.authority, asked.path] { #expect(!range.string(in: part.span).contains("secret")) }
        }
        #expect(head.asked(in: bytes.span).authority.string(in: bytes.span) == "x.test:8")
        #expect(head.asked(in: bytes.span).path.string(in: bytes.span) == "/a/b")
    }
}
