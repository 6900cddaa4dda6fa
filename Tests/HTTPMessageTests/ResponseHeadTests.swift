import HTTPMessage
import Testing

@Suite("Response heads")
struct ResponseHeadTests {
    /// Feeds the lines of `text`, cut behind each LF. Nil with the error where it is refused.
    private func read(
        _ text: String, requestWasHead: Bool = false, allowHTTP2: Bool = false
    ) -> (head: ResponseHead, isComplete: Bool, error: MessageError?) {
        var head = ResponseHead()
        head.reset(requestWasHead: requestWasHead)
        var isComplete = false
        var line: [UInt8] = []
        for byte in wire(text) {
            line.append(byte)
            guard byte == 10 else { continue }
            do throws(MessageError) {
                isComplete = try head.append(line: line.span, allowHTTP2: allowHTTP2)
            } catch {
                return (head, false, error)
            }
            line = []
        }
        return (head, isComplete, nil)
    }

    @Test("a plain response is taken apart, its bytes as they came")
    func plain() {
        let text = "HTTP/1.1 404 Not  Found\r\nServer: x\r\nContent-Length: 5\r\nKeep-Alive: a\r\n\r\n"
        let (head, isComplete, error) = read(text)
        #expect(isComplete && error == nil)
        #expect(head.status == 404)
        #expect(head.reason.text(in: text) == "Not  Found")
        #expect(head.bytes == wire(text))
        #expect(head.fields.map { $0.name.text(in: text) } == ["Server", "Content-Length", "Keep-Alive"])
        #expect(head.fields.map { $0.value.text(in: text) } == ["x", "5", "a"])
        #expect(head.fields.map(\.isHopByHop) == [false, false, true])
        #expect(head.framing == .length(5))
        #expect(head.keepAlive)
        #expect(head.index(of: .server) == 0)
    }

    static let framingRows: [Row<BodyFraming>] = [
        Row("RFC 9112 6.3.8", "HTTP/1.1 200 OK\r\n\r\n", .untilClose),
        Row("RFC 9112 6.3.6", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .length(0)),
        Row("RFC 9112 6.3.4", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", .chunked),
        Row("RFC 9112 6.3.1", "HTTP/1.1 204 No Content\r\n\r\n", .none),
        Row("RFC 9112 6.3.1", "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n", .none),
        Row("RFC 9112 6.3.1", "HTTP/1.1 100 Continue\r\n\r\n", .none),
        Row("RFC 9112 6.3.1", "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", .none),
        Row("RFC 9112 6.3.8, 1.0", "HTTP/1.0 200 OK\r\n\r\n", .untilClose),
        Row("RFC 9112 4, empty reason", "HTTP/1.1 200 \r\nContent-Length: 1\r\n\r\n", .length(1)),
        Row("RFC 9112 4, obs-text in reason", "HTTP/1.1 200 \u{FC}\t!\r\nContent-Length: 1\r\n\r\n", .length(1)),
    ]

    @Test("the framing follows RFC 9112 6.3", arguments: framingRows)
    func framing(row: Row<BodyFraming>) {
        let (head, isComplete, error) = read(row.input)
        #expect(isComplete && error == nil)
        #expect(head.framing == row.expected)
    }

    @Test("an answer to HEAD has no body, whatever it says (RFC 9112 6.3)")
    func answerToHead() {
        #expect(read("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n", requestWasHead: true).head.framing == .none)
        let chunked = read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", requestWasHead: true)
        #expect(chunked.head.framing == .none && chunked.isComplete)
        #expect(read("HTTP/1.1 200 OK\r\n\r\n", requestWasHead: true).head.keepAlive)
    }

    @Test(
        "answers that two parsers could read differently are refused",
        arguments: [
            Row("RFC 9112 4, two spaces", "HTTP/1.1  200 OK\r\n", 502),
            Row("RFC 9112 4, no blank and more", "HTTP/1.1 200;\r\n", 502),
            Row("RFC 9112 4, glued", "HTTP/1.1 200OK\r\n", 502), Row("RFC 9112 4, tab", "HTTP/1.1\t200 OK\r\n", 502),
            Row("RFC 9112 2.3, lower case", "http/1.1 200 OK\r\n", 502),
            Row("RFC 9112 2.3", "HTTP/1.2 200 OK\r\n", 502),
            Row("RFC 9112 2.3", "HTTP/0.9 200 OK\r\n", 502), Row("RFC 9112 2.3", "HTTP/1 200 OK\r\n", 502),
            Row("HTTP/2 on a connection that isn't", "HTTP/2 200 \r\n", 502), Row("ICY", "ICY 200 OK\r\n", 502),
            Row("HTTP/3", "HTTP/3 200 \r\n", 502), Row("leading space", " HTTP/1.1 200 OK\r\n", 502),
            Row("RFC 9110 15, code", "HTTP/1.1 999 X\r\n", 502), Row("RFC 9110 15, code", "HTTP/1.1 600 X\r\n", 502),
            Row("RFC 9110 15, code", "HTTP/1.1 099 X\r\n", 502), Row("RFC 9110 15, code", "HTTP/1.1 20 OK\r\n", 502),
            Row("RFC 9110 15, code", "HTTP/1.1 2000 OK\r\n", 502), Row("RFC 9110 15, code", "HTTP/1.1 +20 OK\r\n", 502),
            Row("RFC 9110 15, code", "HTTP/1.1 2x0 OK\r\n", 502),
            Row("control in reason", "HTTP/1.1 200 O\u{1}K\r\n", 502),
            Row("CR in reason", "HTTP/1.1 200 O\rK\r\n", 502), Row("NUL in reason", "HTTP/1.1 200 O\0K\r\n", 502),
            Row("bare LF", "HTTP/1.1 200 OK\n", 502), Row("empty line first", "\r\n", 502),
            Row("bare LF first", "\n", 502),
            Row("bare LF", "HTTP/1.1 200 OK\r\nX: 1\n", 502), Row("bare LF at the end", "HTTP/1.1 200 OK\r\n\n", 502),
            Row("CR CR LF", "HTTP/1.1 200 OK\r\nX: 1\r\r\n", 502),
            Row("bare CR", "HTTP/1.1 200 OK\r\nX: 1\rY: 2\r\n", 502),
            Row("CR CR LF at the end", "HTTP/1.1 200 OK\r\n\r\r\n", 502),
            Row("RFC 9112 5.2, fold", "HTTP/1.1 200 OK\r\nX: 1\r\n 2\r\n", 502),
            Row("RFC 9112 5.1, space before colon", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n", 502),
            Row("RFC 9112 5.1, tab before colon", "HTTP/1.1 200 OK\r\nTransfer-Encoding\t: chunked\r\n", 502),
            Row("RFC 9112 5.1, lookalike", "HTTP/1.1 200 OK\r\nContent_Length : 5\r\n", 502),
            Row("RFC 9110 5.1, empty name", "HTTP/1.1 200 OK\r\n: 5\r\n", 502),
            Row("RFC 9110 5.1, space in name", "HTTP/1.1 200 OK\r\nX Y: 5\r\n", 502),
            Row("RFC 9112 5, no colon", "HTTP/1.1 200 OK\r\nX\r\n", 502),
            Row("NUL", "HTTP/1.1 200 OK\r\nX: \0\r\n", 502),
            Row("RFC 9112 6.3, CL + TE", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n", 502),
            Row("RFC 9112 6.3, CL twice", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 5\r\n", 502),
            Row("RFC 9112 6.3, CLs", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n", 502),
            Row("RFC 9110 8.6", "HTTP/1.1 200 OK\r\nContent-Length: 2, 4\r\n", 502),
            Row("RFC 9110 8.6", "HTTP/1.1 200 OK\r\nContent-Length: 2x\r\n", 502),
            Row("RFC 9110 8.6", "HTTP/1.1 200 OK\r\nContent-Length: 2 3\r\n", 502),
            Row("RFC 9110 8.6", "HTTP/1.1 200 OK\r\nContent-Length: 0x2\r\n", 502),
            Row("RFC 9110 8.6", "HTTP/1.1 200 OK\r\nContent-Length: +2\r\n", 502),
            Row("RFC 9110 8.6", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n", 502),
            Row("RFC 9110 8.6", "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n", 502),
            Row("RFC 9112 6.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n", 502),
            Row("RFC 9112 6.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n", 502),
            Row("RFC 9112 6.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n", 502),
            Row("RFC 9112 6.1", "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n", 502),
            Row("RFC 9112 6.1, 1.0", "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 502),
            Row("RFC 9112 6.1, 204 and 1.0", "HTTP/1.0 204 X\r\nTransfer-Encoding: chunked\r\n\r\n", 502),
            Row("RFC 9112 6.1, 1xx", "HTTP/1.1 103 X\r\nTransfer-Encoding: chunked\r\n\r\n", 502),
            Row("RFC 9112 6.1, 101", "HTTP/1.1 101 X\r\nTransfer-Encoding: chunked\r\n\r\n", 502),
            Row("RFC 9110 8.6, 204", "HTTP/1.1 204 X\r\nContent-Length: 5\r\n\r\n", 502),
            Row("RFC 9110 8.6, 1xx", "HTTP/1.1 103 X\r\nContent-Length: 5\r\n\r\n", 502),
            Row("RFC 9110 8.6, 101", "HTTP/1.1 101 X\r\nContent-Length: 5\r\n\r\n", 502),
            Row("lines behind the end", "HTTP/1.1 200 OK\r\n\r\nX: 1\r\n", 502),
            Row("many fields", "HTTP/1.1 200 OK\r\n" + String(repeating: "X: 1\r\n", count: 257), 502),
            Row(
                "large",
                "HTTP/1.1 200 OK\r\n" + String(repeating: "X: \(String(repeating: "x", count: 9000))\r\n", count: 30),
                502),
        ])
    func refuses(row: Row<Int>) {
        let (_, isComplete, error) = read(row.input)
        #expect(!isComplete)
        #expect(error?.status == row.expected)
    }

    @Test(
        "answers that break the grammar and can be read in one way only are read, and end their connection",
        arguments: [
            Row("RFC 9112 4, no reason", "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\n", BodyFraming.length(5)),
            Row("RFC 9112 4, no reason", "HTTP/1.1 304\r\n\r\n", .none),
            Row("RFC 9112 6.1, 204", "HTTP/1.1 204 X\r\nTransfer-Encoding: chunked\r\n\r\n", .none),
            Row("RFC 9112 5.1", "HTTP/1.1 200 OK\r\nX-A : b\r\nContent-Length: 5\r\n\r\n", .length(5)),
            Row("RFC 9112 5.1", "HTTP/1.1 200 OK\r\nX-A \t :b\r\nContent-Length: 5\r\n\r\n", .length(5)),
            Row(
                "RFC 9110 7.6.1", "HTTP/1.1 200 OK\r\nConnection: keep-alive; timeout=5\r\nContent-Length: 5\r\n\r\n",
                .length(5)),
        ])
    func irregular(row: Row<BodyFraming>) {
        let (head, isComplete, error) = read(row.input)
        #expect(isComplete && error == nil)
        #expect(head.framing == row.expected)
        #expect(head.isIrregular && !head.keepAlive)
        for field in head.fields where field.known == .other { #expect(field.name.text(in: row.input) == "X-A") }
    }

    @Test("whitespace around the value of a framing field of an answer is no fault (RFC 9110 5.5)")
    func blanksAroundFraming() {
        for text in ["Content-Length:   5 ", "Content-Length:\t5"] {
            let head = read("HTTP/1.1 200 OK\r\n\(text)\r\n\r\n").head
            #expect(head.framing == .length(5) && head.keepAlive)
        }
        #expect(read("HTTP/1.1 200 OK\r\nTransfer-Encoding:  chunked \r\n\r\n").head.framing == .chunked)
    }

    @Test(
        "an error says which byte, field or limit it was",
        arguments: [
            Row("line", "HTTP/1.1 200 OK\r\nA: b\r\nX-A: b\u{1}\r\n", ["0x01", "line 3", "X-A"]),
            Row("name", "HTTP/1.1 200 OK\r\nX(A: b\r\n", ["0x28", "line 2"]),
            Row("reason", "HTTP/1.1 200 O\u{7F}\r\n", ["reason phrase", "0x7F"]),
            Row("code", "HTTP/1.1 2x0 OK\r\n", ["three digits"]),
            Row("version", "HTTP/3.1 200 OK\r\n", ["HTTP/1.1"]),
            Row("colon", "HTTP/1.1 200 OK\r\nContent-Length : 5\r\n", ["between Content-Length and its colon"]),
            Row("fields", "HTTP/1.1 200 OK\r\n" + String(repeating: "X: 1\r\n", count: 257), ["more than 256 fields"]),
            Row(
                "size",
                "HTTP/1.1 200 OK\r\n" + String(repeating: "X: \(String(repeating: "x", count: 9000))\r\n", count: 30),
                ["larger than 256 KiB"]),
            Row(
                "options", "HTTP/1.1 200 OK\r\nConnection: \(String(repeating: "a,", count: 33))\r\n",
                ["more than 32 names"]),
        ])
    func details(row: Row<[String]>) throws {
        let detail = try #require(read(row.input).error?.detail)
        for words in row.expected { #expect(detail.contains(words), "\(detail)") }
    }

    @Test("CL and TE together are refused in answers to HEAD too")
    func ambiguousAnswerToHead() {
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
        #expect(read(text, requestWasHead: true).error != nil)
    }

    @Test("the Content-Length: 0 of a 204 is not forwarded (RFC 9110 8.6)")
    func emptyNoContent() {
        let (head, isComplete, _) = read("HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n")
        #expect(isComplete)
        #expect(head.fields.map(\.isHopByHop) == [true])
    }

    @Test("HTTP/2 heads are read where the connection speaks it (RFC 9113 8.2.2)")
    func http2() {
        let (head, isComplete, _) = read("HTTP/2 200 \r\ncontent-length: 5\r\n\r\n", allowHTTP2: true)
        #expect(isComplete && head.isHTTP2 && head.keepAlive && head.framing == .length(5))
        #expect(read("HTTP/2 200 \r\n\r\n", allowHTTP2: true).head.framing == .untilClose)
        #expect(read("HTTP/2 200 \r\ntransfer-encoding: chunked\r\n\r\n", allowHTTP2: true).error != nil)
        #expect(read("HTTP/1.1 200 OK\r\n\r\n", allowHTTP2: true).isComplete)
        #expect(read("HTTP/2.0 200 \r\n\r\n", allowHTTP2: true).error != nil)
    }

    @Test("the connection is kept only when the answer's end is certain (RFC 9112 9.3)")
    func keepAlive() {
        #expect(!read("HTTP/1.1 200 OK\r\n\r\n").head.keepAlive)
        #expect(!read("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nConnection: close\r\n\r\n").head.keepAlive)
        #expect(!read("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\n").head.keepAlive)
        #expect(read("HTTP/1.0 200 OK\r\nContent-Length: 1\r\nConnection: keep-alive\r\n\r\n").head.keepAlive)
        #expect(!read("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").head.keepAlive)
    }

    @Test("what Connection names is marked, wherever it stands")
    func named() {
        let text =
            "HTTP/1.1 200 \r\nX-A: 1\r\nConnection: x-a,content-length,X-B\r\nx-b:\r\nContent-Length: 1\r\nC: 3\r\n\r\n"
        #expect(read(text).head.fields.map(\.isHopByHop) == [true, true, true, false, false])
    }

    @Test("only 1xx answers are interim, without 101, which tells whether it is one")
    func interim() {
        #expect(read("HTTP/1.1 103 Early Hints\r\n\r\n").head.isInterim)
        let switching = read("HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n").head
        #expect(!switching.isInterim && switching.upgrades)
        #expect(!read("HTTP/1.1 101 X\r\n\r\n").head.upgrades)
        #expect(!read("HTTP/1.1 200 OK\r\n\r\n").head.isInterim)
    }

    @Test("one head object reads interim and final answers one after the other")
    func reuse() throws {
        var head = ResponseHead()
        for status in [100, 103, 200] {
            head.reset(requestWasHead: false)
            for line in ["HTTP/1.1 \(status) X\r\n", "X: 1\r\n", "\r\n"] {
                let bytes = wire(line)
                let isComplete = try head.append(line: bytes.span, allowHTTP2: false)
                #expect(isComplete == (line == "\r\n"))
            }
            #expect(head.status == status && head.fields.count == 1)
        }
    }

    @Test("trailer lines are passed on, dropped or refused (RFC 9110 6.5.1)")
    func trailers() throws {
        func check(_ line: String) throws(MessageError) -> (name: ByteRange, value: ByteRange)? {
            let bytes = wire(line)
            return try TrailerRules.field(in: bytes.span)
        }
        let field = try #require(try check("Grpc-Status: 0 \r\n"))
        #expect(field == (ByteRange(0, 11), ByteRange(13, 14)))
        for line in ["Content-Length: 5", "Transfer-Encoding: chunked", "Set-Cookie: a", "Connection: x"] {
            #expect(try check(line + "\r\n") == nil)
        }
        for line in [
            "a: b\n", "a : b\r\n", " a: b\r\n", "a\r\n", ": b\r\n", "a: \0\r\n", "a: b\rc\r\n", "", "\n", "a: b",
        ] {
            #expect(throws: MessageError.self) { try check(line) }
        }
    }
}
