import HTTPMessage
import Testing

@Suite("Request fields")
struct RequestFieldTests {
    /// Field lines behind `Host: a`.
    static func request(_ fields: String, method: String = "POST", version: String = "1.1") -> String {
        "\(method) / HTTP/\(version)\r\nHost: a\r\n\(fields)\r\n"
    }

    static let refusedSyntaxRows: [Row<Int>] = [
        Row("RFC 9112 5.1, space before colon", "X : 1\r\n", 400),
        Row("RFC 9112 5.1, tab before colon", "X\t: 1\r\n", 400),
        Row("RFC 9112 5.1, CVE-2019-16869", "Transfer-Encoding : chunked\r\n", 400),
        Row("RFC 9112 5.1, space before colon of Content-Length", "Content-Length : 5\r\n", 400),
        Row("RFC 9112 5.2, obs-fold", "X: 1\r\n 2\r\n", 400),
        Row("RFC 9112 5.2, obs-fold with tab", "X: 1\r\n\t2\r\n", 400),
        Row("RFC 9112 5.2, fold in Transfer-Encoding", "Transfer-Encoding:\r\n chunked\r\n", 400),
        Row("RFC 9112 5.2, fold of nothing", "X: 1\r\n \r\n", 400),
        Row("RFC 9110 5.1, empty name", ": 1\r\n", 400),
        Row("RFC 9112 5, no colon", "X\r\n", 400),
        Row("RFC 9112 5, words without colon", "X y\r\n", 400),
        Row("RFC 9110 5.1, space in name", "X Y: 1\r\n", 400),
        Row("RFC 9110 5.1, parenthesis in name", "X(Y): 1\r\n", 400),
        Row("RFC 9110 5.1, slash in name", "X/Y: 1\r\n", 400),
        Row("RFC 9110 5.1, quote in name", "\"X\": 1\r\n", 400),
        Row("RFC 9110 5.1, NUL in name", "X\0Y: 1\r\n", 400),
        Row("RFC 9110 5.1, control in name", "X\u{1}: 1\r\n", 400),
        Row("RFC 9110 5.1, obs-text in name", "X\u{FF}: 1\r\n", 400),
        Row("RFC 9110 5.1, no-break space, smuggling through UTF-8", "Transfer-Encoding\u{A0}: chunked\r\n", 400),
        Row("RFC 9110 5.5, NUL in value", "X: a\0b\r\n", 400),
        Row("RFC 9110 5.5, control in value", "X: a\u{1}b\r\n", 400),
        Row("RFC 9110 5.5, VT in value", "X: a\u{B}b\r\n", 400),
        Row("RFC 9110 5.5, FF in value", "X: a\u{C}b\r\n", 400),
        Row("RFC 9110 5.5, ESC in value", "X: \u{1B}[2J\r\n", 400),
        Row("RFC 9110 5.5, DEL in value", "X: a\u{7F}b\r\n", 400),
        Row("RFC 9112 2.2, bare CR in value", "X: a\rb\r\n", 400),
        Row("RFC 9112 2.2, bare CR hides a field", "X: a\rTransfer-Encoding: chunked\r\n", 400),
        Row("RFC 9112 2.2, bare LF ends a line", "X: a\nY: b\r\n", 400),
        Row("RFC 9112 2.2, LF CR", "X: a\n\rY: b\r\n", 400),
        Row("RFC 9112 2.2, CR CR LF", "X: a\r\r\n", 400),
        Row("RFC 9112 2.2, bare LF ends the head", "X: a\r\n\n", 400),
        Row("RFC 9112 2.2, bare CR ends the head", "X: a\r\n\rX", 400),
        Row("CGI look-alike", "Content_Length: 5\r\n", 400),
        Row("CGI look-alike", "transfer_encoding: chunked\r\n", 400),
    ]

    @Test("field lines that two parsers could read differently are refused", arguments: refusedSyntaxRows)
    func refusedSyntax(row: Row<Int>) {
        #expect(refusal(Self.request(row.input)) == row.expected)
    }

    @Test("whitespace before the first field is refused (RFC 9112 2.2)", arguments: [" ", "\t", " \r\n", "  X: 1\r\n"])
    func whitespaceBeforeFirstField(blank: String) {
        #expect(refusal("GET / HTTP/1.1\r\n\(blank)Host: a\r\n\r\n") == 400)
    }

    static let valuesRows: [Row<String>] = [
        Row("RFC 9112 5.1, OWS is not part of the value", "X: \t a b \t ", "a b"),
        Row("RFC 9112 5.1, none", "X:a", "a"),
        Row("RFC 9110 5.5, empty", "X:", ""),
        Row("RFC 9110 5.5, blank", "X: \t ", ""),
        Row("RFC 9110 5.5, tab inside", "X: a\tb", "a\tb"),
        Row("RFC 9110 5.5, colons", "X: a:b: c", "a:b: c"),
        Row("RFC 9110 5.1, every token character", "!#$%&'*+-.^_`|~09azAZ: 1", "1"),
    ]

    @Test("values are trimmed and otherwise left as they are", arguments: valuesRows)
    func values(row: Row<String>) {
        let message = Self.request(row.input + "\r\n")
        #expect(parsed(message).fields[1].value.text(in: message) == row.expected)
    }

    @Test("bytes above 0x7F pass in values (RFC 9110 5.5, obs-text)")
    func obsText() {
        let head = parsed(Self.request("X: \u{80}\u{FF}\r\n"))
        #expect(head.fields[1].value.count == 2)
    }

    @Test("every known field is recognised in any case, and nothing else is", arguments: KnownField.allCases)
    func recognition(field: KnownField) throws {
        guard field != .other, field != .expect else { return }
        let value =
            switch field {
            case .contentLength: "0"
            case .transferEncoding: "chunked"
            default: "x"
            }
        for name in [field.name, field.name.uppercased()] {
            let message =
                field == .host
                ? "GET / HTTP/1.1\r\n\(name): \(value)\r\n\r\n" : Self.request("\(name): \(value)\r\n")
            #expect(parsed(message).fields.last?.known == field)
        }
        for index in field.name.utf8.indices {
            var changed = Array(field.name.utf8)
            changed[field.name.utf8.distance(from: field.name.startIndex, to: index)] = 0x7A
            let name = String(decoding: changed, as: UTF8.self)
            guard name != field.name else { continue }
            #expect(parsed(Self.request("\(name): x\r\n")).fields.last?.known == .other)
        }
        #expect(parsed(Self.request("\(field.name)x: x\r\n")).fields.last?.known == .other)
    }

    // MARK: Host

    static let refusedHostsRows: [Row<Int>] = [
        Row("RFC 9112 3.2, missing", "", 400),
        Row("RFC 9112 3.2, repeated", "Host: a\r\nHost: a\r\n", 400),
        Row("RFC 9112 3.2, repeated with another", "Host: a\r\nX: 1\r\nhost: b\r\n", 400),
        Row("RFC 9112 3.2, empty", "Host:\r\n", 400),
        Row("RFC 9112 3.2, list", "Host: a, b\r\n", 400),
        Row("RFC 9112 3.2, two words", "Host: a b\r\n", 400),
        Row("RFC 9112 3.2, userinfo", "Host: u@a\r\n", 400),
        Row("RFC 9112 3.2, userinfo", "Host: u:p@a\r\n", 400),
        Row("RFC 9112 3.2, path", "Host: a/b\r\n", 400),
        Row("RFC 9112 3.2, URL", "Host: http://a\r\n", 400),
        Row("RFC 9112 3.2, port no number", "Host: a:b\r\n", 400),
        Row("RFC 9112 3.2, port too large", "Host: a:65536\r\n", 400),
        Row("RFC 9112 3.2, port 0", "Host: a:0\r\n", 400),
        Row("RFC 9112 3.2, two ports", "Host: a:80:80\r\n", 400),
        Row("RFC 9112 3.2, port only", "Host: :80\r\n", 400),
        Row("RFC 9112 3.2, backslash", "Host: a\\b\r\n", 400),
        Row("RFC 9112 3.2, non-ASCII", "Host: m\u{FC}nchen\r\n", 400),
        Row("RFC 9112 3.2, bare IPv6", "Host: ::1\r\n", 400),
        Row("RFC 9112 3.2, broken IPv6", "Host: [::1\r\n", 400),
        Row("RFC 9112 3.2, question mark", "Host: a?b\r\n", 400),
        Row("RFC 9112 3.2, hash", "Host: a#b\r\n", 400),
    ]

    @Test("a missing, repeated or invalid Host is refused", arguments: refusedHostsRows)
    func refusedHosts(row: Row<Int>) {
        #expect(refusal("GET / HTTP/1.1\r\n\(row.input)\r\n") == row.expected)
        #expect(refusal("GET http://a/ HTTP/1.1\r\n\(row.input)\r\n") == row.expected)
        if row.input != "" { #expect(refusal("GET / HTTP/1.0\r\n\(row.input)\r\n") == row.expected) }
    }

    @Test("HTTP/1.0 needs no Host (RFC 9112 3.2)")
    func hostlessOldClient() {
        #expect(parsed("GET / HTTP/1.0\r\n\r\n").host.isEmpty)
    }

    // MARK: Limits

    @Test("head size and field count are bounded (RFC 6585 5, RFC 9112 3)")
    func limits() {
        let limits = HeadLimits(maxBytes: 100, maxFields: 3)
        let long = String(repeating: "x", count: 100)
        #expect(refusal("GET /\(long) HTTP/1.1\r\n", limits: limits) == 414)
        #expect(refusal("GET / HTTP/1.1\r\nX: \(long)", limits: limits) == 431)
        #expect(refusal("GET / HTTP/1.1\r\nHost: a\r\nX:\r\nX:\r\n\r\n", limits: limits) == nil)
        #expect(refusal("GET / HTTP/1.1\r\nHost: a\r\nX:\r\nX:\r\nX:\r\n\r\n", limits: limits) == 431)
        let exact = "GET / HTTP/1.1\r\nHost: a\r\nX: "
        let fill = String(repeating: "x", count: 100 - wire(exact).count - 4)
        #expect(refusal(exact + fill + "\r\n\r\n", limits: limits) == nil)
        #expect(refusal(exact + fill + "x\r\n\r\n", limits: limits) == 431)
    }

    @Test("a head of many kilobytes that comes byte by byte is read once, not again and again")
    func drip() {
        let message = wire(Self.request("X: \(String(repeating: "x", count: 60_000))\r\n"))
        var head = RequestHead()
        var sent: [UInt8] = []
        sent.reserveCapacity(message.count)
        var last = Outcome.incomplete
        for byte in message {
            sent.append(byte)
            last = outcome(&head, sent)
        }
        #expect(last == .complete(message.count))
    }
}
