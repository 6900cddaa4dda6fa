import HTTPMessage
import Testing

/// The result of decoding a chunked body.
struct Decoded: Equatable {
    var content: [UInt8] = []
    var consumed = 0
    var isComplete = false
    var error: MessageError?
    var trailers: [String] = []

    /// Feeds `pieces` as a connection would: what a step consumed is gone, the rest stays in front of the next piece.
    init(_ pieces: [[UInt8]], decoder: inout ChunkedDecoder) {
        for piece in pieces {
            var from = 0
            do throws(MessageError) {
                reading: while true {
                    switch try decoder.next(piece.span, from: from) {
                    case .needMore(let end):
                        consumed += end - from
                        break reading
                    case .data(let range, let end):
                        content += piece[range.range]
                        consumed += end - from
                        from = end
                    case .end(let end):
                        consumed += end - from
                        isComplete = true
                        break reading
                    }
                }
            } catch {
                self.error = error
            }
            if isComplete || error != nil { break }
        }
        trailers = decoder.trailers.map {
            String(decoding: $0.name, as: UTF8.self) + "=" + String(decoding: $0.value, as: UTF8.self)
        }
    }

    init(_ text: String) {
        var decoder = ChunkedDecoder()
        self.init([wire(text)], decoder: &decoder)
    }
}

@Suite("Chunked bodies")
struct ChunkedDecoderTests {
    @Test(
        "well-formed bodies are decoded (RFC 9112 7.1)",
        arguments: [
            Row("empty", "0\r\n\r\n", ""), Row("one", "5\r\nhello\r\n0\r\n\r\n", "hello"),
            Row("two", "5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", "hello!"),
            Row("either case", "a\r\n0123456789\r\nA\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"),
            Row("leading zeros", "0005\r\nhello\r\n000\r\n\r\n", "hello"),
            Row("CRLF as content", "2\r\n\r\n\r\n0\r\n\r\n", "\r\n"),
            Row("7.1.1 extensions", "5;a;b=c;d=\"e;\\\"f\t \"\r\nhello\r\n0;x\r\n\r\n", "hello"),
            Row("7.1.1 empty quoted value", "5;a=\"\"\r\nhello\r\n0\r\n\r\n", "hello"),
        ])
    func decodes(row: Row<String>) {
        let decoded = Decoded(row.input)
        #expect(decoded.error == nil)
        #expect(decoded.isComplete)
        #expect(decoded.content == wire(row.expected))
        #expect(decoded.consumed == wire(row.input).count)
    }

    @Test(
        "an answer may have whitespace behind a size, and then its connection is not used again",
        arguments: [
            Row("padded size", "5  \r\nhello\r\n0 \r\n\r\n", true), Row("tab", "5\t\r\nhello\r\n0\r\n\r\n", true),
            Row("a regular one", "5;a=\"b c\"\r\nhello\r\n0\r\nX-A: b\r\n\r\n", false),
        ])
    func blanksInAnswers(row: Row<Bool>) {
        var decoder = ChunkedDecoder(ofAnswer: true)
        let decoded = Decoded([wire(row.input)], decoder: &decoder)
        #expect(decoded.error == nil && decoded.isComplete)
        #expect(decoded.content == wire("hello"))
        #expect(decoded.trailers == (row.input.contains("X-A") ? ["X-A=b"] : []))
        #expect(decoder.isIrregular == row.expected)
        decoder.reset()
        #expect(!decoder.isIrregular)
    }

    @Test(
        "whitespace behind a chunk size of an answer has its places and its limit",
        arguments: [
            " 5\r\nhello\r\n", "1 0\r\nhello\r\n", "5 x\r\nhello\r\n", "5 \nhello\r\n", "5 \r \nhello\r\n",
            "5\(String(repeating: " ", count: 300))\r\nhello\r\n", "5\r\nhello \r\n", "0\r\nX : b\r\n\r\n",
            "5 ;a\r\nhello\r\n",
        ])
    func blanksElsewhere(text: String) {
        var decoder = ChunkedDecoder(ofAnswer: true)
        #expect(Decoded([wire(text)], decoder: &decoder).error != nil)
    }

    @Test("bytes that follow a chunked body are left alone")
    func nextMessage() {
        let body = "1\r\na\r\n0\r\n\r\n"
        let decoded = Decoded(body + "GET / HTTP/1.1\r\n")
        #expect(decoded.isComplete)
        #expect(decoded.consumed == wire(body).count)
    }

    @Test(
        "bodies that two parsers could read differently are refused",
        arguments: [
            Row("7.1, no size", "\r\nhello\r\n", 400), Row("7.1, plus", "+5\r\nhello\r\n", 400),
            Row("7.1, minus", "-5\r\nhello\r\n", 400), Row("7.1, prefix", "0x5\r\nhello\r\n", 400),
            Row("7.1, space in front", " 5\r\nhello\r\n", 400), Row("7.1, tab in front", "\t5\r\nhello\r\n", 400),
            Row("7.1, space behind", "5 \r\nhello\r\n", 400), Row("7.1, space inside", "1 0\r\nhello\r\n", 400),
            Row("7.1, underscore", "1_0\r\n", 400), Row("7.1, not hexadecimal", "g\r\n", 400),
            Row("7.1, comma", "5,\r\nhello\r\n", 400), Row("7.1, NUL", "5\0\r\nhello\r\n", 400),
            Row("7.1, fraction", "5.0\r\nhello\r\n", 400), Row("7.1, quoted", "\"5\"\r\nhello\r\n", 400),
            Row("7.1, 2^63", "8000000000000000\r\n", 400), Row("7.1, 2^64 - 1", "ffffffffffffffff\r\n", 400),
            Row("7.1, 2^64 + 5", "10000000000000005\r\nhello\r\n", 400),
            Row("7.1, many zeros", "000000000000000005\r\nhello\r\n", 400),
            Row("7.1, LF after size (CVE-2025-22871)", "5\nhello\r\n0\r\n\r\n", 400),
            Row("7.1, CR after size", "5\rhello\r\n0\r\n\r\n", 400), Row("7.1, CR CR LF", "5\r\r\nhello\r\n", 400),
            Row("7.1, no CRLF after data", "5\r\nhello0\r\n\r\n", 400),
            Row("7.1, LF after data", "5\r\nhello\n0\r\n\r\n", 400),
            Row("7.1, too much data", "5\r\nhello!\r\n0\r\n\r\n", 400),
            Row("7.1, CR X after data", "5\r\nhello\rX", 400),
            Row("7.1, too little data", "6\r\nhello\r\n0\r\n\r\n", 400),
            Row("7.1.1, LF in extension (TERM.EXT)", "5;a\nhello\r\n0\r\n\r\n", 400),
            Row("7.1.1, CR in extension", "5;a\rb\r\nhello\r\n", 400), Row("7.1.1, no name", "5;\r\nhello\r\n", 400),
            Row("7.1.1, no name", "5;=a\r\nhello\r\n", 400), Row("7.1.1, no value", "5;a=\r\nhello\r\n", 400),
            Row("7.1.1, BWS", "5 ;a\r\nhello\r\n", 400), Row("7.1.1, BWS", "5; a\r\nhello\r\n", 400),
            Row("7.1.1, BWS", "5;a =b\r\nhello\r\n", 400), Row("7.1.1, BWS", "5;a= b\r\nhello\r\n", 400),
            Row("7.1.1, text after quotes", "5;a=\"b\"c\r\nhello\r\n", 400),
            Row("7.1.1, LF in quotes", "5;a=\"\n\"\r\nhello\r\n", 400),
            Row("7.1.1, CRLF in quotes", "5;a=\"\r\n\"\r\n", 400),
            Row("7.1.1, NUL", "5;a\0\r\nhello\r\n", 400), Row("7.1.1, NUL in quotes", "5;a=\"\0\"\r\n", 400),
            Row("7.1.1, escaped LF", "5;a=\"\\\n\"\r\n", 400), Row("7.1.1, obs-text name", "5;\u{FF}\r\n", 400),
            Row("7.1.1, long (CVE-2023-39326)", "5;" + String(repeating: "a", count: 300) + "\r\nhello\r\n", 400),
            Row(
                "7.1.1, many", String(repeating: "1;" + String(repeating: "a", count: 200) + "\r\nx\r\n", count: 25),
                400),
            Row("7.1.2, LF ends the body", "0\r\n\n", 400), Row("7.1.2, CR ends the body", "0\r\n\rX", 400),
            Row("7.1.2, LF after last size", "0\n\r\n", 400),
            Row("7.1.2, space before colon", "0\r\na : b\r\n\r\n", 400),
            Row("7.1.2, fold", "0\r\na: b\r\n c\r\n\r\n", 400), Row("7.1.2, no colon", "0\r\na\r\n\r\n", 400),
            Row("7.1.2, no name", "0\r\n: a\r\n\r\n", 400), Row("7.1.2, NUL", "0\r\na: \0\r\n\r\n", 400),
            Row("7.1.2, LF", "0\r\na: b\n\r\n", 400), Row("7.1.2, CR", "0\r\na: b\rc\r\n\r\n", 400),
            Row("7.1.2, control", "0\r\na: \u{1}\r\n\r\n", 400),
            Row("7.1.2, the next request", "0\r\nGET / HTTP/1.1\r\n", 400),
            Row("7.1.2, bounded", "0\r\na: " + String(repeating: "b", count: 9000) + "\r\n\r\n", 431),
            Row("7.1.2, bounded", "0\r\n" + String(repeating: "a: b\r\n", count: 33) + "\r\n", 431),
        ])
    func refuses(row: Row<Int>) {
        let decoded = Decoded(row.input)
        #expect(decoded.error?.status == row.expected)
        #expect(!decoded.isComplete)
    }

    @Test("a refused body stays refused, a reset decoder begins anew")
    func reset() {
        var decoder = ChunkedDecoder()
        #expect(Decoded([wire("x"), wire("0\r\n\r\n")], decoder: &decoder).error != nil)
        #expect(Decoded([wire("0\r\n\r\n")], decoder: &decoder).error != nil)
        decoder.reset()
        #expect(Decoded([wire("0\r\nA: b\r\n\r\n")], decoder: &decoder).trailers == ["A=b"])
        decoder.reset()
        #expect(Decoded([wire("0\r\n\r\n")], decoder: &decoder).trailers == [])
    }

    @Test("trailers are kept as trailers, the forbidden ones are dropped (RFC 9110 6.5.1)")
    func trailers() {
        let forbidden = [
            "Transfer-Encoding: chunked", "Content-Length: 5", "Host: b", "Authorization: x", "Cookie: x",
            "Set-Cookie: x", "Content-Type: x", "Content-Encoding: x", "Content-Range: x", "Trailer: x", "TE: x",
            "Connection: x", "Upgrade: x", "Proxy-Authorization: x", "Proxy-Foo: x", "If-Match: x", "Range: x",
            "Cache-Control: x", "Expect: 100-continue", "Max-Forwards: 1", "WWW-Authenticate: x", "Location: x",
            "Via: x",
            "X-Forwarded-For: x", "Content_Length: 5", "Forwarded: x",
        ]
        let kept = ["Grpc-Status: 0", "ETag: x", "Server-Timing: x", "Content-Digest: x", "X-Amz-Checksum: \u{E9}"]
        let decoded = Decoded("0\r\n" + (kept + forbidden).map { $0 + "\r\n" }.joined() + "\r\n")
        #expect(decoded.error == nil)
        #expect(decoded.trailers.map { $0.prefix { $0 != "=" } } == kept.map { $0.prefix { $0 != ":" } })
    }

    @Test("sizes up to 2^63 - 1 are taken, and content comes as it arrives")
    func largeChunk() throws {
        var decoder = ChunkedDecoder()
        let start = wire("7fffffffffffffff\r\nabc")
        let first = try decoder.next(start.span, from: 0)
        let second = try decoder.next(start.span, from: 21)
        #expect(first == .data(ByteRange(18, 21), consumed: 21))
        #expect(second == .needMore(consumed: 21))
    }
}
