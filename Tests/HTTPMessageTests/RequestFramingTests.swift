import HTTPMessage
import Testing

@Suite("Request framing and connection")
struct RequestFramingTests {
    private static func request(_ fields: String, method: String = "POST", version: String = "1.1") -> String {
        RequestFieldTests.request(fields, method: method, version: version)
    }

    static let refusedRows: [Row<Int>] = [
        Row("RFC 9112 6.3, CL and TE", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
        Row("RFC 9112 6.3, TE and CL", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", 400),
        Row("RFC 9112 6.3, CL 0 and TE", "Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", 400),
        Row("RFC 9112 6.3, repeated CL", "Content-Length: 5\r\nContent-Length: 5\r\n", 400),
        Row("RFC 9112 6.3, differing CL", "Content-Length: 5\r\nContent-Length: 6\r\n", 400),
        Row("RFC 9112 6.3, CL list", "Content-Length: 5, 6\r\n", 400),
        Row("RFC 9112 6.3, CL list of equals", "Content-Length: 5,5\r\n", 400),
        Row("RFC 9110 8.6, plus", "Content-Length: +5\r\n", 400),
        Row("RFC 9110 8.6, minus", "Content-Length: -5\r\n", 400),
        Row("RFC 9110 8.6, minus zero", "Content-Length: -0\r\n", 400),
        Row("RFC 9110 8.6, hexadecimal", "Content-Length: 0x5\r\n", 400),
        Row("RFC 9110 8.6, hexadecimal digits", "Content-Length: a\r\n", 400),
        Row("RFC 9110 8.6, octal", "Content-Length: 0o5\r\n", 400),
        Row("RFC 9110 8.6, leading zero", "Content-Length: 010\r\n", 400),
        Row("RFC 9110 8.6, zeros", "Content-Length: 00\r\n", 400),
        Row("RFC 9110 8.6, spaces inside", "Content-Length: 1 0\r\n", 400),
        Row("RFC 9110 8.6, spaces around", "Content-Length:  5\r\n", 400),
        Row("RFC 9110 8.6, space behind", "Content-Length: 5 \r\n", 400),
        Row("RFC 9110 8.6, tab", "Content-Length:\t5\r\n", 400),
        Row("RFC 9110 8.6, fraction", "Content-Length: 5.0\r\n", 400),
        Row("RFC 9110 8.6, exponent", "Content-Length: 1e1\r\n", 400),
        Row("RFC 9110 8.6, underscore", "Content-Length: 1_0\r\n", 400),
        Row("RFC 9110 8.6, quoted", "Content-Length: \"5\"\r\n", 400),
        Row("RFC 9110 8.6, unit", "Content-Length: 5b\r\n", 400),
        Row("RFC 9110 8.6, empty", "Content-Length:\r\n", 400),
        Row("RFC 9110 8.6, other digits", "Content-Length: \u{D9}\u{A5}\r\n", 400),
        Row("RFC 9110 8.6, 2^63", "Content-Length: 9223372036854775808\r\n", 400),
        Row("RFC 9110 8.6, 2^64", "Content-Length: 18446744073709551616\r\n", 400),
        Row("RFC 9110 8.6, 2^64 + 5", "Content-Length: 18446744073709551621\r\n", 400),
        Row("RFC 9110 8.6, many digits", "Content-Length: \(String(repeating: "9", count: 400))\r\n", 400),
        Row("RFC 9112 6.1, TE in 1.0", "TE10", 400),
        Row("RFC 9112 6.3, TE empty", "Transfer-Encoding:\r\n", 400),
        Row("RFC 9112 6.3, TE identity", "Transfer-Encoding: identity\r\n", 400),
        Row("RFC 9112 6.3, TE gzip", "Transfer-Encoding: gzip\r\n", 400),
        Row("RFC 9112 6.3, TE unknown", "Transfer-Encoding: xchunked\r\n", 400),
        Row("RFC 9112 6.3, TE prefix", "Transfer-Encoding: chunke\r\n", 400),
        Row("RFC 9112 6.1, TE list", "Transfer-Encoding: gzip, chunked\r\n", 501),
        Row("RFC 9112 6.1, TE list with identity", "Transfer-Encoding: identity, chunked\r\n", 501),
        Row("RFC 9112 6.3, TE chunked not last", "Transfer-Encoding: chunked, gzip\r\n", 400),
        Row("RFC 9112 6.1, TE chunked twice", "Transfer-Encoding: chunked, chunked\r\n", 400),
        Row("RFC 9112 6.1, TE repeated", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
        Row("RFC 9112 6.1, TE repeated with other", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", 400),
        Row("RFC 9112 6.1, TE comma behind", "Transfer-Encoding: chunked,\r\n", 400),
        Row("RFC 9112 6.1, TE comma in front", "Transfer-Encoding: ,chunked\r\n", 400),
        Row("RFC 9112 6.1, TE parameter", "Transfer-Encoding: chunked;q=1\r\n", 400),
        Row("RFC 9112 6.1, TE quoted", "Transfer-Encoding: \"chunked\"\r\n", 400),
        Row("RFC 9112 6.1, TE single quotes", "Transfer-Encoding: 'chunked'\r\n", 400),
        Row("RFC 9112 6.1, TE tab", "Transfer-Encoding:\tchunked\r\n", 400),
        Row("RFC 9112 6.1, TE two spaces", "Transfer-Encoding:  chunked\r\n", 400),
        Row("RFC 9112 6.1, TE space behind", "Transfer-Encoding: chunked \r\n", 400),
        Row("RFC 9112 6.1, TE tab behind", "Transfer-Encoding: chunked\t\r\n", 400),
        Row("RFC 9112 6.1, TE VT in front (CVE-2019-18277)", "Transfer-Encoding: \u{B}chunked\r\n", 400),
        Row("RFC 9112 6.1, TE VT behind", "Transfer-Encoding: chunked\u{B}\r\n", 400),
        Row("RFC 9112 6.1, TE NUL", "Transfer-Encoding: \0chunked\r\n", 400),
        Row("RFC 9112 6.1, TE obs-text", "Transfer-Encoding: chunked\u{FF}\r\n", 400),
        Row("RFC 9112 6.1, TE words", "Transfer-Encoding: x chunked\r\n", 400),
        Row("RFC 9112 6.1, TE BOM", "Transfer-Encoding: \u{EF}\u{BB}\u{BF}chunked\r\n", 400),
    ]

    @Test("framing that two parsers could read differently is refused", arguments: refusedRows)
    func refused(row: Row<Int>) {
        let message =
            row.input == "TE10"
            ? Self.request("Transfer-Encoding: chunked\r\n", version: "1.0") : Self.request(row.input)
        #expect(refusal(message) == row.expected)
    }

    static let acceptedRows: [Row<BodyFraming>] = [
        Row("RFC 9112 6.3, none", "", .none),
        Row("RFC 9112 6.2, zero", "Content-Length: 0\r\n", .length(0)),
        Row("RFC 9112 6.2", "Content-Length: 10\r\n", .length(10)),
        Row("RFC 9112 6.2, without space", "content-length:10\r\n", .length(10)),
        Row("RFC 9112 6.2, 2^63 - 1", "Content-Length: 9223372036854775807\r\n", .length(UInt64(Int64.max))),
        Row("RFC 9112 6.1", "Transfer-Encoding: chunked\r\n", .chunked),
        Row("RFC 9112 7, case", "TRANSFER-ENCODING:cHuNkEd\r\n", .chunked),
    ]

    @Test("plain framing is understood", arguments: acceptedRows)
    func accepted(row: Row<BodyFraming>) {
        #expect(parsed(Self.request(row.input)).framing == row.expected)
    }

    @Test("TRACE and CONNECT have no content (RFC 9110 9.3.6, 9.3.8)", arguments: ["TRACE", "CONNECT"])
    func methodsWithoutContent(method: String) {
        #expect(refusal(Self.request("Content-Length: 5\r\n", method: method)) == 400)
        #expect(refusal(Self.request("Transfer-Encoding: chunked\r\n", method: method)) == 400)
        #expect(refusal(Self.request("Content-Length: 0\r\n", method: method)) == nil)
    }

    static let persistenceRows: [Row<Bool>] = [
        Row("RFC 9112 9.3, 1.1", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", true),
        Row("RFC 9112 9.3, close", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", false),
        Row("RFC 9112 9.3, Close in a list", "GET / HTTP/1.1\r\nHost: a\r\nConnection: x , ClosE\r\n\r\n", false),
        Row(
            "RFC 9112 9.3, second field", "GET / HTTP/1.1\r\nHost: a\r\nConnection: x\r\nConnection: close\r\n\r\n",
            false),
        Row("RFC 9112 9.3, both", "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, keep-alive\r\n\r\n", false),
        Row("RFC 9112 9.3, 1.0", "GET / HTTP/1.0\r\n\r\n", false),
        Row("RFC 9112 C.2.2, 1.0 keep-alive", "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", true),
        Row(
            "RFC 9112 9.3, 1.0 keep-alive with a proxy", "GET http://a/ HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
            false),
        Row("RFC 9112 C.2.2, Proxy-Connection", "GET / HTTP/1.0\r\nProxy-Connection: keep-alive\r\n\r\n", false),
    ]

    @Test("the connection persists when version and Connection say so", arguments: persistenceRows)
    func persistence(row: Row<Bool>) {
        #expect(parsed(row.input).keepAlive == row.expected)
    }

    @Test("Expect may be 100-continue alone, only on 1.1, only with content (RFC 9110 10.1.1)")
    func expectations() {
        let expect = "Expect: 100-Continue\r\n"
        #expect(parsed(Self.request(expect + "Content-Length: 5\r\n")).expectsContinue)
        #expect(parsed(Self.request(expect + "Transfer-Encoding: chunked\r\n")).expectsContinue)
        #expect(!parsed(Self.request(expect)).expectsContinue)
        #expect(!parsed(Self.request(expect + "Content-Length: 0\r\n")).expectsContinue)
        #expect(!parsed(Self.request(expect + "Content-Length: 5\r\n", version: "1.0")).expectsContinue)
        for other in ["200-ok", "100-continue, x", "100-continue=1", "", "100-continue\r\nExpect: 100-continue"] {
            #expect(refusal(Self.request("Expect: \(other)\r\n")) == 417)
        }
    }

    @Test("an upgrade needs both fields and 1.1 (RFC 9110 7.8)")
    func upgrades() {
        #expect(parsed(Self.request("Connection: Upgrade\r\nUpgrade: websocket\r\n")).upgradeRequested)
        #expect(parsed(Self.request("Upgrade: websocket\r\nConnection: keep-alive, upgrade\r\n")).upgradeRequested)
        #expect(!parsed(Self.request("Upgrade: websocket\r\n")).upgradeRequested)
        #expect(!parsed(Self.request("Connection: upgrade\r\n")).upgradeRequested)
        #expect(!parsed(Self.request("Connection: upgrade\r\nUpgrade: x\r\n", version: "1.0")).upgradeRequested)
    }

    // MARK: Hop by hop

    static let hopByHopRows: [Row<Bool>] = [
        Row("RFC 9110 7.6.1", "Connection: x", true),
        Row("RFC 9110 7.6.1", "Keep-Alive: timeout=5", true),
        Row("RFC 9110 7.6.1", "Proxy-Connection: close", true),
        Row("RFC 9110 7.6.1", "TE: trailers", true),
        Row("RFC 9110 7.6.1", "Trailer: x", true),
        Row("RFC 9110 7.6.1", "Upgrade: x", true),
        Row("RFC 9110 7.6.1", "Transfer-Encoding: chunked", true),
        Row("RFC 9110 11.7.2", "Proxy-Authorization: Basic x", true),
        Row("RFC 9110 11.7.1", "Proxy-Authenticate: Basic", true),
        Row("RFC 9110 11.7.3", "Proxy-Authentication-Info: x", true),
        Row("RFC 7540 3.2.1", "HTTP2-Settings: x", true),
        Row("CVE-2016-5385, HTTP_PROXY", "Proxy: http://evil.test", true),
        Row("its lookalike", "Proxy_Authorization: x", true),
        Row("no more than a name that begins so", "Proxying: x", false),
        Row("unknown Proxy-", "pRoXy-Whatever: x", true),
        Row("RFC 9209", "Proxy-Status: x", false),
        Row("no hyphen", "Proxyx: x", false),
        Row("not at the start", "X-Proxy-A: x", false),
        Row("end to end", "Authorization: x", false),
        Row("named", "Foo: x\r\nConnection: foo", true),
        Row("named first", "Connection: a, FOO\r\nfoo: x", true),
        Row("not named", "Food: x\r\nConnection: foo", false),
        Row("a known one named", "Authorization: x\r\nConnection: authorization", true),
        Row("RFC 9110 7.6.1, can't name away", "Content-Length: 5\r\nConnection: content-length", false),
        Row("can't name away", "Via: 1.1 x\r\nConnection: via", false),
        Row("can't name away", "Max-Forwards: 5\r\nConnection: max-forwards", false),
        Row("can't name away", "Cache-Control: no-store\r\nConnection: Cache-Control", false),
    ]

    @Test("hop-by-hop fields and what Connection names stop here", arguments: hopByHopRows)
    func hopByHop(row: Row<Bool>) throws {
        let head = parsed(Self.request(row.input + "\r\n"))
        let field = try #require(
            head.fields.dropFirst().first { $0.known != .connection } ?? head.fields.last)
        #expect(field.isHopByHop == row.expected)
    }

    @Test("Connection can't remove Host or Transfer-Encoding")
    func hostStays() {
        let head = parsed(Self.request("Connection: host, transfer-encoding\r\nTransfer-Encoding: chunked\r\n"))
        #expect(!head.fields[0].isHopByHop)
        #expect(head.framing == .chunked)
    }

    @Test(
        "a malformed or endless Connection is refused (RFC 9110 7.6.1)",
        arguments: [
            "close;x", "\"close\"", "a b", "close=1", "a,(b)", "\u{FF}", String(repeating: "a,", count: 40),
        ])
    func malformedConnection(value: String) {
        #expect(refusal(Self.request("Connection: \(value)\r\n")) == 400)
    }

    @Test("empty elements of Connection are nothing (RFC 9110 5.6.1)")
    func emptyElements() {
        #expect(!parsed(Self.request("Connection: ,, close ,\r\n")).keepAlive)
        #expect(parsed(Self.request("Connection:\r\n")).keepAlive)
    }
}
