import HTTPMessage
import Testing

@Suite("Request lines")
struct RequestLineTests {
    @Test("a plain request is taken apart")
    func plain() {
        let message = "GET http://localhost:27080/1k?a=b HTTP/1.1\r\nHost: localhost:27080\r\nAccept: */*\r\n\r\n"
        let head = parsed(message)
        #expect(head.method.text(in: message) == "GET")
        #expect(head.methodKind == .get)
        #expect(head.target.text(in: message) == "http://localhost:27080/1k?a=b")
        #expect(head.version == .http11)
        #expect(head.fields.count == 2)
        #expect(head.fields[1].name.text(in: message) == "Accept")
        #expect(head.fields[1].value.text(in: message) == "*/*")
        #expect(head.host.text(in: message) == "localhost:27080")
        #expect(head.framing == .none)
        #expect(head.keepAlive)
        #expect(head.index(of: .host) == 0)
        #expect(head.index(of: .via) == nil)
    }

    @Test("bytes behind a request's head are left alone")
    func pipelined() {
        var head = RequestHead()
        let first = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n"
        #expect(outcome(&head, wire(first + "abcGET \0\r\n")) == .complete(wire(first).count))
        #expect(head.framing == .length(3))
    }

    @Test("a reset head reads the next request as a new one does")
    func reuse() {
        let messages = [
            "POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close, x\r\nX: 1\r\n\r\n",
            "GET /b HTTP/1.0\r\n\r\n",
            "PUT /c HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\nX: 1\r\n\r\n",
        ]
        var reused = RequestHead()
        for message in messages + messages.reversed() {
            reused.reset()
            #expect(outcome(&reused, wire(message)) == .complete(wire(message).count))
            let fresh = parsed(message)
            #expect(reused.fields == fresh.fields)
            #expect(reused.framing == fresh.framing)
            #expect(reused.keepAlive == fresh.keepAlive)
            #expect(reused.expectsContinue == fresh.expectsContinue)
            #expect(reused.host == fresh.host)
        }
    }

    @Test("a refused head stays refused")
    func staysRefused() {
        var head = RequestHead()
        let first = outcome(&head, wire("GET /  HTTP/1.1\r\n"))
        #expect(first == outcome(&head, wire("GET / HTTP/1.1\r\nHost: a\r\n\r\n")))
    }

    @Test(
        "methods are case-sensitive tokens",
        arguments: [
            ("GET", Method.get, true), ("HEAD", .head, true), ("POST", .post, false), ("PUT", .put, true),
            ("DELETE", .delete, true), ("OPTIONS", .options, true), ("TRACE", .trace, true),
            ("PATCH", .patch, false), ("get", .other, false), ("PROPFIND", .other, false), ("M-SEARCH", .other, false),
            ("GETT", .other, false), ("GE", .other, false), ("!#$%&'*+-.^_`|~", .other, false),
        ])
    func methods(name: String, kind: Method, isIdempotent: Bool) {
        let head = parsed("\(name) / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(head.methodKind == kind)
        #expect(head.methodKind.isIdempotent == isIdempotent)
    }

    static let refusedRows: [Row<Int>] = [
        Row("RFC 9112 3, empty method", " / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.2, whitespace in front", " GET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.2, tab in front", "\tGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.2, two empty lines", "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.2, bare LF in front", "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.2, bare CR in front", "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9110 9.1, method no token", "G@T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9110 9.1, quoted method", "\"GET\" / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9110 9.1, NUL in method", "GE\0T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9110 9.1, obs-text in method", "G\u{C9}T / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, long method", String(repeating: "A", count: 33) + " / HTTP/1.1\r\n", 501),
        Row("RFC 9112 3, two spaces before target", "GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, two spaces before version", "GET /  HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, tab as separator", "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, tab before version", "GET /\tHTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, VT as separator", "GET\u{B}/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, no-break space", "GET\u{A0}/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3.2, space in target", "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, trailing space", "GET / HTTP/1.1 \r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, words behind version", "GET / HTTP/1.1 x\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, two targets", "GET / /b HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("HTTP/0.9", "GET /\r\n\r\n", 400),
        Row("HTTP/0.9 with a space", "GET / \r\n\r\n", 400),
        Row("RFC 9112 3, no target", "GET HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3, method alone", "GET\r\n\r\n", 400),
        Row("RFC 9112 2.3, lower case", "GET / http/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, mixed case", "GET / Http/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, other protocol", "GET / RTSP/1.0\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, HTTPS", "GET / HTTPS/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, no minor version", "GET / HTTP/1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, two digits", "GET / HTTP/1.10\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, two digits in front", "GET / HTTP/01.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, comma", "GET / HTTP/1,1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, space inside", "GET / HTTP/ 1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, sign", "GET / HTTP/+1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.3, letters", "GET / HTTP/1.x\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9110 15.6.6, 1.2", "GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
        Row("RFC 9110 15.6.6, 1.9", "GET / HTTP/1.9\r\nHost: a\r\n\r\n", 505),
        Row("RFC 9110 15.6.6, 0.9", "GET / HTTP/0.9\r\n\r\n", 505),
        Row("RFC 9110 15.6.6, 2.0", "GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        Row("RFC 9110 15.6.6, 3.0", "GET / HTTP/3.0\r\nHost: a\r\n\r\n", 505),
        Row("RFC 9113 3.4, preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
        Row("RFC 9113 11.6, its method", "PRI / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.2, bare LF", "GET / HTTP/1.1\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.2, bare CR", "GET / HTTP/1.1\rHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.2, CR CR LF", "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 2.2, bare CR in target", "GET /\rX HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3.2, NUL in target", "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3.2, control in target", "GET /\u{1} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 9112 3.2, DEL in target", "GET /\u{7F} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("RFC 3986 2, non-ASCII in target", "GET /\u{C3}\u{A4} HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        Row("TLS to the plain port", "\u{16}\u{3}\u{1}\u{2}\0\u{1}", 400),
        Row("SOCKS to the HTTP port", "\u{5}\u{1}\0", 400),
        Row("a JSON-RPC line", "{\"jsonrpc\": \"2.0\"}\r\n", 400),
    ]

    @Test("request lines that two parsers could read differently are refused", arguments: refusedRows)
    func refused(row: Row<Int>) {
        #expect(refusal(row.input) == row.expected)
    }

    @Test("one empty line in front of a request is skipped (RFC 9112 2.2)")
    func emptyLineInFront() {
        let message = "\r\nGET /x HTTP/1.1\r\nHost: a\r\n\r\n"
        #expect(parsed(message).target.text(in: message) == "/x")
    }

    @Test("wrong bytes are refused as soon as they are there, not when the line is whole")
    func early() {
        #expect(refusal("GET / HTTP/1.2") == nil)
        #expect(refusal("GET / HTTP/1.2\r") == 505)
        #expect(refusal("GET / HTP") == 400)
        #expect(refusal("\u{16}") == 400)
        #expect(refusal("GET / HTTP/1.1\r\nX:\0") == 400)
    }
}
