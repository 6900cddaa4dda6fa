import TestSupport
import Testing

/// One message as it goes over the wire, bytes above 0x7F as Latin-1, and where its rule comes from.
private struct Row: Sendable, CustomStringConvertible {
    let source: String
    let text: String

    init(_ source: String, _ text: String) {
        self.source = source
        self.text = text
    }

    var description: String { "\(source): \(text.debugDescription)" }
    var bytes: [UInt8] { text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) } }
}

@Suite(
    "what two parsers could read differently is refused, by what the origin really received", .stopsProxies,
    .serialized,
    .timeLimit(.minutes(2)))
struct SmugglingTests {
    /// The request that a misread of the row would let through.
    private static let smuggled = "GET /smuggled HTTP/1.1\r\nHost: api.test\r\n\r\n"

    /// Each is refused, its connection closed, and not a byte of it or of what follows reaches the origin.
    private func expectRefused(_ rows: [Row]) async throws {
        let proxy = try await ProxyInProcess()
        for row in rows {
            let client = try await proxy.connect()
            try await client.send(row.bytes + Array(Self.smuggled.utf8))
            let answer = String(decoding: try await client.readToEnd(), as: UTF8.self)
            #expect(["400", "501", "505"].contains(answer.dropFirst(9).prefix(3)), "\(row): \(answer)")
            #expect(answer.contains("\r\nConnection: close\r\n"), "\(row)")
            #expect(answer.components("Proxy-Status: ") == 1, "\(row): \(answer)")
        }
        // Nothing is on its way any more once this has come through.
        #expect(try await proxy.request("GET", "http://api.test/last").status == 200)
        #expect(proxy.origin.requests.map(\.target) == ["/last"])
        #expect(proxy.origin.connections.count == 1)
    }

    private static func post(_ fields: String, _ body: String = "5\r\nhello\r\n0\r\n\r\n") -> String {
        "POST /row HTTP/1.1\r\nHost: api.test\r\n\(fields)\r\n\r\n\(body)"
    }

    // MARK: Framing

    private static let codings: [Row] =
        [
            "\u{B}chunked", "chunked\t", "chunked ", "\tchunked", "  chunked", "\"chunked\"", "'chunked'", "chunked;",
            "chunked;a=b", "chunked,", ",chunked", ", chunked", "chunked, chunked", "chunked,chunked", "identity",
            "identity, chunked", "chunked, identity", "gzip", "gzip, chunked", "chunked, gzip", "x", "xchunked",
            "chunkedx", "chunke", "\0chunked", "chunked\0", "chunk\0ed", "ch\u{84}unked", "chunked\u{85}",
            "chunked\u{A0}", "\u{A0}chunked", "chunked\r", "chunked\r\n\t", "\r\n chunked", "\r\n\tchunked",
            "chunked\r\n x", "\n chunked", "chunked\n", "", "chunked\u{C}", "\u{8}chunked", "chun ked", "trailers",
            "chunked\u{1C}", "chunked\u{7F}", "Chunked, ",
        ].map { Row("RFC 9112 6.1", post("Transfer-Encoding: \($0)")) }
        + [
            ("RFC 9112 6.1, CVE-2019-16276", "Transfer-Encoding : chunked"),
            ("RFC 9112 5.1", "Transfer-Encoding\t: chunked"), ("RFC 9112 5.2", " Transfer-Encoding: chunked"),
            ("RFC 9112 5.2", "\tTransfer-Encoding: chunked"), ("RFC 9110 5.6.2", "Transfer-Encoding\u{B}: chunked"),
            ("RFC 9112 2.2", "Transfer-Encoding\r: chunked"), ("RFC 9110 5.5", "Transfer-Encoding:\u{B}chunked"),
            ("RFC 9110 5.6.2", "\"Transfer-Encoding\": chunked"), ("RFC 9112 5", "Transfer-Encoding chunked"),
            ("RFC 9110 5.5", "\0Transfer-Encoding: chunked"), ("RFC 9110 5.6.2", "\u{FF}Transfer-Encoding: chunked"),
            ("RFC 9110 5.6.2", "Transfer\u{AD}Encoding: chunked"), ("RFC 9112 5", ": chunked"),
            ("CGI reads it so", "Transfer_Encoding: chunked"), ("CGI reads it so", "Content_Length: 5"),
            ("PHP reads it so", "Transfer.Encoding: chunked"), ("PHP reads it so", "Content.Length: 5"),
            ("PHP reads it so", "transfer~encoding: chunked"), ("PHP reads it so", "Content!Length: 5"),
            ("RFC 9112 6.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked"),
            ("RFC 9112 6.1", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity"),
            ("RFC 9112 6.1", "Transfer-Encoding: x\r\nTransfer-Encoding: chunked"),
            ("RFC 9112 6.1, CVE-2021-22959", "Transfer-Encoding: chunked\r\nContent-Length: 5"),
            ("RFC 9112 6.1", "Content-Length: 5\r\nTransfer-Encoding: chunked"),
            ("RFC 9112 6.1", "Content-Length: 0\r\nTransfer-Encoding: chunked"),
            ("RFC 9112 2.2, CVE-2022-35256", "X: y\nTransfer-Encoding: chunked"),
            ("RFC 9112 2.2, CVE-2023-30589", "X: y\rTransfer-Encoding: chunked"),
            ("RFC 9112 2.2", "X: y\r\n\rTransfer-Encoding: chunked"),
        ].map { Row($0.0, post($0.1)) }
        + [
            Row("RFC 9112 6.1", "POST / HTTP/1.0\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
            Row(
                "RFC 9112 6.1",
                "POST / HTTP/1.0\r\nHost: api.test\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
            ),
        ]

    @Test func `a Transfer-Encoding that two parsers could read differently is refused`() async throws {
        try await expectRefused(Self.codings)
    }

    private static let lengths: [Row] =
        [
            "5, 5", "5,5", "5,", ",5", "0_5", "5_0", "+5", "-5", "-0", "0x5", "0b101", "05", "00", "5 ", "5\t", " 5",
            "\t5", "5 5", "5;", "5;a", "5.0", "\"5\"", "5e0", "", "\u{B}5", "5\u{B}", "5\0", "\u{D9}\u{A5}",
            "5\u{A0}", "\u{A0}5", "\u{B2}", "9223372036854775808", "18446744073709551621", "4294967301x",
            "99999999999999999999999999", "5\r\n ", "\r\n 5", "5\r", "5\n",
        ].map { Row("RFC 9110 8.6", post("Content-Length: \($0)", "hello")) }
        + [
            ("RFC 9112 6.3", "Content-Length: 5\r\nContent-Length: 5"),
            ("RFC 9112 6.3", "Content-Length: 5\r\nContent-Length: 6"),
            ("RFC 9112 6.3", "content-length: 6\r\nCONTENT-LENGTH: 5"),
            ("RFC 9112 6.3", "Content-Length: 0\r\nContent-Length: 5"),
            ("RFC 9112 5.1", "Content-Length : 5"), ("RFC 9110 5.6.2", "Content-Length\0: 5"),
            ("RFC 9110 5.6.2", "Content Length: 5"), ("CGI reads it so", "Content-Length: 5\r\nContent_Length: 0"),
            ("RFC 9112 6.3", "Content-Length: 5\r\nContent-Length:"),
        ].map { Row($0.0, post($0.1, "hello")) }

    @Test func `a Content-Length that two parsers could read differently is refused`() async throws {
        try await expectRefused(Self.lengths)
    }

    private static let chunks: [Row] =
        [
            "0x5\r\nhello\r\n", "5 \r\nhello\r\n", " 5\r\nhello\r\n", "\t5\r\nhello\r\n", "5\t\r\nhello\r\n",
            "+5\r\nhello\r\n", "-5\r\nhello\r\n", "5_0\r\nhello\r\n", "5,\r\nhello\r\n", "5.0\r\nhello\r\n",
            "g\r\nhello\r\n", "\"5\"\r\nhello\r\n", "\r\n5\r\nhello\r\n", "5\u{B}\r\nhello\r\n", ";a\r\nhello\r\n",
            "10000000000000005\r\nhello\r\n", "ffffffffffffffff\r\nhello\r\n", "8000000000000000\r\nhello\r\n",
            "5\nhello\r\n", "5\rhello\r\n", "5\r\r\nhello\r\n", "5\r\nhello\n", "5\r\nhello\r", "5\r\nhello",
            "5\r\nhelloX\r\n", "5\r\nhell\r\n", "5\r\n\r\nhello\r\n", "5 ;a\r\nhello\r\n", "5; a\r\nhello\r\n",
            "5;\r\nhello\r\n", "5;a=\r\nhello\r\n", "5;a=\"b\r\nhello\r\n", "5;a=\"\r\n\"\r\nhello\r\n",
            "5;\0\r\nhello\r\n", "5;a=\0\r\nhello\r\n",
        ].map { Row("RFC 9112 7.1", post("Transfer-Encoding: chunked", $0 + "0\r\n\r\n")) }
        + [
            ("CVE-2025-22871", "5;a\nhello\r\n0\r\n\r\n"), ("CVE-2025-22871", "5;a=\"x\nb\"\r\nhello\r\n0\r\n\r\n"),
            ("CVE-2025-22871", "5\r\nhello\r\n0\n\r\n"), ("CVE-2025-22871", "5\r\nhello\r\n0\r\n\n"),
            ("CVE-2023-39326", "5;\(String(repeating: "a", count: 300))\r\nhello\r\n0\r\n\r\n"),
            ("RFC 9112 7.1.2", "0\r\nX : y\r\n\r\n"), ("RFC 9112 5.2", "0\r\n X: y\r\n\r\n"),
            ("RFC 9112 5.2", "0\r\nX: y\r\n z\r\n\r\n"), ("RFC 9112 5", "0\r\nX\r\n\r\n"),
            ("RFC 9112 5", "0\r\n: y\r\n\r\n"), ("RFC 9112 2.2", "0\r\nX: y\n\r\n"),
            ("RFC 9112 2.2", "0\r\nX: y\r\n\n"), ("RFC 9112 2.2", "0\r\nX: a\rb\r\n\r\n"),
            ("RFC 9110 5.5", "0\r\nX: a\0b\r\n\r\n"), ("RFC 9112 7.1.2", "0\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n"),
            ("RFC 9112 7.1", "0\r\n\r\r\n"),
        ].map { Row($0.0, post("Transfer-Encoding: chunked", $0.1)) }

    @Test func `chunks and trailers that two parsers could read differently are refused`() async throws {
        try await expectRefused(Self.chunks)
    }

    // MARK: Request line

    private static let requestLines: [Row] =
        [
            ("RFC 9112 3", "GET  / HTTP/1.1"), ("RFC 9112 3", "GET /  HTTP/1.1"), ("RFC 9112 3", "GET / HTTP/1.1 "),
            ("RFC 9112 3", "GET / HTTP/1.1\t"), ("RFC 9112 3", " GET / HTTP/1.1"), ("RFC 9112 3", "GET\t/ HTTP/1.1"),
            ("RFC 9112 3", "GET /\tHTTP/1.1"), ("RFC 9112 3", "GET /\u{B}HTTP/1.1"),
            ("RFC 9112 3", "GET /a b HTTP/1.1"),
            ("RFC 9112 3", "GET / HTTP/1.1 HTTP/1.1"), ("RFC 9112 2.3", "GET / http/1.1"),
            ("RFC 9112 2.3", "GET / HTTP/01.1"), ("RFC 9112 2.3", "GET / HTTP/1.01"), ("RFC 9112 2.3", "GET / HTTP/1"),
            ("RFC 9112 2.3", "GET / HTTP/11.1"), ("RFC 9112 2.3", "GET / HTTP/1.1x"),
            ("RFC 9112 2.3", "GET / HTTPS/1.1"), ("RFC 9112 2.3", "GET / ICY/1.1"), ("HTTP/0.9", "GET /"),
            ("RFC 9112 3", "GET"), ("RFC 9110 15.6.6", "GET / HTTP/2.0"), ("RFC 9110 15.6.6", "GET / HTTP/1.2"),
            ("RFC 9110 15.6.6", "GET / HTTP/0.9"), ("RFC 9113 11.6", "PRI /x HTTP/1.1"),
            ("RFC 9112 2.2", "GET / HTTP/1.1\r"),
            ("RFC 9112 2.2", "\nGET / HTTP/1.1"),
            ("RFC 9112 2.2", "\rGET / HTTP/1.1"), ("RFC 9112 2.2", "\r\n\r\nGET / HTTP/1.1"),
            ("RFC 9112 2.2", "GET / HTTP/1.1\n"), ("RFC 9110 9.1", "G\0T / HTTP/1.1"),
            ("RFC 9110 9.1", "G(T / HTTP/1.1"), ("RFC 9110 9.1", "G\u{E9}T / HTTP/1.1"),
            ("RFC 9110 9.1", "\"GET\" / HTTP/1.1"), ("RFC 3986 3.3", "GET /\u{80} HTTP/1.1"),
            ("RFC 3986 3.3", "GET /\0 HTTP/1.1"), ("RFC 3986 3.3", "GET /\u{1} HTTP/1.1"),
            ("RFC 3986 3.3", "GET /\u{7F} HTTP/1.1"), ("RFC 9110 7.1", "GET /#f HTTP/1.1"),
            ("RFC 9110 7.1", "GET http://api.test/#f HTTP/1.1"), ("browsers read a slash", "GET /\\x HTTP/1.1"),
            ("RFC 9112 3.2.4", "GET * HTTP/1.1"), ("RFC 9112 3.2.4", "OPTIONS ** HTTP/1.1"),
            ("RFC 9112 3.2.3", "GET api.test:80 HTTP/1.1"), ("RFC 9112 3.2", "GET api.test HTTP/1.1"),
            ("RFC 9112 3.2", "GET ?x HTTP/1.1"), ("RFC 9112 3.2", "GET ../x HTTP/1.1"),
            ("RFC 9112 3.2.2", "GET ftp://api.test/ HTTP/1.1"), ("RFC 9112 3.2.2", "GET http:/api.test/ HTTP/1.1"),
            ("RFC 9110 4.2.1", "GET http:///x HTTP/1.1"), ("RFC 9110 4.2.4", "GET http://user@api.test/ HTTP/1.1"),
            ("RFC 9110 4.2.4", "GET http://@api.test/ HTTP/1.1"),
            ("RFC 9110 4.2.4", "GET http://api.test@evil.test/ HTTP/1.1"),
            ("RFC 3986 3.2.2", "GET http://evil.test\\@api.test/ HTTP/1.1"),
            ("RFC 3986 3.2.2", "GET http://api%2etest/ HTTP/1.1"),
            ("RFC 3986 3.2.2", "GET http://api.test,evil.test/ HTTP/1.1"),
            ("RFC 3986 3.2.3", "GET http://api.test:99999/ HTTP/1.1"),
            ("RFC 3986 3.2.2", "GET http://api..test/ HTTP/1.1"), ("RFC 6874", "GET http://[::1%25lo]/ HTTP/1.1"),
            ("inet_aton(3)", "GET http://0x7f.1/ HTTP/1.1"), ("inet_aton(3)", "GET http://2130706433/ HTTP/1.1"),
        ].map { Row($0.0, "\($0.1)\r\nHost: api.test\r\n\r\n") }
        + [
            Row("RFC 9110 9.3.8", "TRACE / HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\n\r\nhello"),
            Row("RFC 9110 9.3.6", "CONNECT api.test:80 HTTP/1.1\r\nHost: api.test\r\nContent-Length: 5\r\n\r\nhello"),
            Row("RFC 8446 4.1.2, not HTTP", "\u{16}\u{3}\u{1}\u{1}\0\u{1}"),
        ]

    @Test func `a request line that two parsers could read differently is refused`() async throws {
        try await expectRefused(Self.requestLines)
    }

    // MARK: Fields

    private static let hosts: [Row] =
        [
            "a b", "api.test,evil.test", "api.test, evil.test", "user@api.test", "api.test/", "api.test?x",
            "api.test#x",
            "http://api.test", "api.test:80:80", "api.test:x", "api.test:-1", "api.test:+80", "api.test: 80",
            "api.test :80", "api.test\0", "api.te\0st", "\"api.test\"", "(api.test)", "api.test;", "[api.test]", "[::1",
            "::1", "", "%61pi.test", "api.test%00", "api\\test", "\u{E9}pi.test", "api..test", ".", "api.test\r\n x",
        ].map { Row("RFC 9112 3.2", "GET /row HTTP/1.1\r\nHost: \($0)\r\n\r\n") }
        + [
            "", "Host: api.test\r\nHost: api.test\r\n", "Host: api.test\r\nhost: evil.test\r\n", "Host : api.test\r\n",
            " Host: api.test\r\n", "Host: api.test\r\nHost\0: evil.test\r\n", "Host api.test\r\n",
        ].map { Row("RFC 9112 3.2", "GET /row HTTP/1.1\r\n\($0)\r\n") }
        + [
            Row("RFC 9112 3.2", "GET http://api.test/ HTTP/1.1\r\nHost: a b\r\n\r\n"),
            Row("RFC 9112 3.2", "GET http://api.test/ HTTP/1.1\r\n\r\n"),
        ]

    @Test func `a Host that two parsers could read differently is refused`() async throws {
        try await expectRefused(Self.hosts)
    }

    private static let fields: [Row] = [
        ("RFC 9110 5.5", "X: a\0b"), ("RFC 9110 5.5", "X: a\u{1}b"), ("RFC 9110 5.5", "X: a\u{7F}b"),
        ("RFC 9110 5.5", "X: a\u{B}b"), ("RFC 9112 2.2", "X: a\rb"), ("RFC 9112 2.2", "X: a\nb: c"),
        ("RFC 9112 2.2", "X: a\n"), ("RFC 9112 2.2", "X\r: b"), ("RFC 9112 2.2", "X: a\r\r"),
        ("RFC 9112 5.1", "X : y"), ("RFC 9112 5.1", "X\t: y"), ("RFC 9112 5.1", "X y: z"), ("RFC 9112 5.2", " X: y"),
        ("RFC 9112 5.2", "X: y\r\n z"), ("RFC 9112 5.2", "X: y\r\n\tz"), ("RFC 9112 5.2", "X: y\r\n \r\n"),
        ("RFC 9112 5", "X"), ("RFC 9112 5", ": y"), ("RFC 9110 5.6.2", "\u{80}: y"), ("RFC 9110 5.6.2", "X(: y"),
        ("RFC 9110 5.6.2", "X@: y"), ("RFC 9110 5.6.2", "X[]: y"), ("RFC 9110 5.6.2", "X/: y"),
        ("RFC 9110 5.6.2", "X;: y"), ("RFC 9110 5.6.2", "X\": y"), ("RFC 9110 5.6.2", "X=: y"),
        ("RFC 9112 5", "GET / HTTP/1.1"), ("RFC 9112 2.2", "\n"), ("RFC 9110 7.6.1", "Connection: \"close\""),
        ("RFC 9110 7.6.1", "Connection: close;x"), ("RFC 9110 7.6.1", "Connection: a b"),
    ].map { Row($0.0, "GET /row HTTP/1.1\r\nHost: api.test\r\n\($0.1)\r\n\r\n") }

    @Test func `each other field that two parsers could read differently is refused`() async throws {
        try await expectRefused(Self.fields)
    }

    // MARK: What is meant, and how it goes on

    private static let accepted: [(source: String, sent: String, line: String, body: String, fields: [String])] = [
        ("RFC 9112 3.2.2", "GET http://api.test/a HTTP/1.1\r\nHost: evil.test\r\n\r\n", "GET /a", "", []),
        ("RFC 9110 4.2.3", "GET http://API.test.:80 HTTP/1.1\r\nHost: x\r\n\r\n", "GET /", "", []),
        ("RFC 9110 4.2.3", "GET http://api.test?q HTTP/1.1\r\nHost: x\r\n\r\n", "GET /?q", "", []),
        ("RFC 9112 3.2.4", "OPTIONS http://api.test HTTP/1.1\r\nHost: x\r\n\r\n", "OPTIONS *", "", []),
        ("RFC 9112 3.2.4", "OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n", "OPTIONS *", "", []),
        ("RFC 9112 2.2", "\r\nGET /a HTTP/1.1\r\nHost: api.test\r\n\r\n", "GET /a", "", []),
        (
            "RFC 9110 9.3.1",
            "GET /a HTTP/1.1\r\nHost: api.test\r\nContent-Length: \(smuggled.utf8.count)\r\n\r\n\(smuggled)",
            "GET /a", smuggled, ["Content-Length: \(smuggled.utf8.count)"]
        ),
        (
            "RFC 9112 7.1",
            "POST /a HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: cHuNkEd\r\n\r\n"
                + "0005;a;b=c;d=\"e;\\\"f\"\r\nhello\r\n00;x\r\n\r\n", "POST /a", "hello",
            ["Transfer-Encoding: chunked"]
        ),
        (
            "RFC 9110 7.6.1",
            "POST /a HTTP/1.1\r\nHost: api.test\r\nConnection: host, content-length, x-a\r\n"
                + "X-A: 1\r\nContent-Length: 5\r\n\r\nhello", "POST /a", "hello", ["Content-Length: 5"]
        ),
        (
            "RFC 9110 7.6.1",
            "POST /a HTTP/1.1\r\nHost: api.test\r\nConnection: transfer-encoding\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", "POST /a", "hello",
            ["Transfer-Encoding: chunked"]
        ),
        (
            "RFC 9110 11.6.2",
            "GET /a HTTP/1.1\r\nHost: api.test\r\nAuthorization: Basic a\r\nauthorization: Basic b\r\n\r\n",
            "GET /a", "", []
        ),
        (
            "RFC 9113 3.1",
            "GET /a HTTP/1.1\r\nHost: api.test\r\nConnection: Upgrade, HTTP2-Settings\r\n"
                + "Upgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n", "GET /a", "", []
        ),
    ]

    /// Each is followed by another request, which must come through as itself.
    @Test func `a request with one meaning reaches the origin with it, and the next request with its own`() async throws
    {
        let proxy = try await ProxyInProcess()
        for (source, sent, line, body, fields) in Self.accepted {
            let seen = proxy.origin.requests.count
            let client = try await proxy.connect(sending: sent + "GET /next HTTP/1.1\r\nHost: api.test\r\n\r\n")
            #expect(try await client.response().status == 200, "\(source) \(sent)")
            #expect(try await client.response().status == 200, "\(source) \(sent)")
            let requests = proxy.origin.requests.dropFirst(seen)
            #expect(requests.map(\.line) == ["\(line) HTTP/1.1", "GET /next HTTP/1.1"], "\(source) \(sent)")
            #expect(requests.first?.text == body, "\(source) \(sent)")
            let whole = ["Host: \(proxy.origin.authority)", "Authorization: Bearer T1", "Via: 1.1 heimdallr-proxy"]
            #expect(Set((requests.first?.fields ?? []).map(\.description)) == Set(whole + fields), "\(source) \(sent)")
        }
        #expect(proxy.origin.problems.isEmpty)
    }
}

extension String {
    /// How often `part` stands in it.
    fileprivate func components(_ part: String) -> Int {
        var count = 0
        var rest = self[...]
        while let range = rest.firstRange(of: part) {
            count += 1
            rest = rest[range.upperBound...]
        }
        return count
    }
}
