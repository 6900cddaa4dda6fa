import HTTPMessage
import Testing

@Suite("Upgrade lists protocols")
struct UpgradeListTests {
    private func list(_ lines: String...) throws -> UpgradeList? {
        let text = "GET / HTTP/1.1\r\nHost: x\r\n" + lines.map { "Upgrade: \($0)\r\n" }.joined() + "\r\n"
        let bytes = Array(text.utf8)
        var head = RequestHead()
        _ = try head.parse(bytes.span, limits: HeadLimits(maxBytes: 4096, maxFields: 64))
        return UpgradeList(head.fields, in: bytes.span)
    }

    @Test(arguments: [
        ("websocket", "websocket"), ("foo/1.1", "foo/1.1"), ("a, b/2 ,\tc", "a, b/2, c"), (", a ,,", "a"), ("", ""),
        (",", ""),
    ])
    func `an Upgrade list keeps its protocols as they are written, without empty members`(line: String, value: String)
        throws
    {
        let list = try #require(try list(line))
        #expect(String(decoding: list.value, as: UTF8.self) == value)
        #expect(list.isEmpty == value.isEmpty)
    }

    @Test func `an Upgrade list has the protocols of all its lines`() throws {
        #expect(try list("a", "b, c")?.value == Array("a, b, c".utf8))
        #expect(try list()?.isEmpty == true)
    }

    @Test(arguments: [
        "web socket", "a/", "/1", "a/b/c", "a;b", "a=b", "\"a\"", "a, b c", "a/1 2", "(a)",
        "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q",
    ])
    func `a line that is no list of protocols is refused`(line: String) throws {
        #expect(try list(line) == nil)
    }

    @Test(arguments: ["h2c", "H2C", "HTTP/2.0", "http/1.1, h2c", "TLS/1.0", "tls"])
    func `HTTP in another form is left out, in any case`(line: String) throws {
        #expect(try list(line)?.withoutHTTP.isEmpty == true)
        #expect(try list("a, \(line), websocket")?.withoutHTTP.value == Array("a, websocket".utf8))
    }

    @Test(arguments: [
        ("websocket", "WebSocket", true), ("b", "a, b", true), ("b, a", "a, b", true), ("", "a", false),
        ("c", "a, b", false), ("a, c", "a, b", false), ("a/1", "a", false), ("a/1", "a/1", true),
    ])
    func `a server goes over to what was offered, and to nothing else`(agreed: String, offer: String, fits: Bool) throws
    {
        let agreed = try #require(try list(agreed))
        let offer = try #require(try list(offer))
        #expect(agreed.isCovered(by: offer) == fits)
    }
}
