import Reactor
import Testing

@testable import HTTP2

struct SessionTests {
    @Test(arguments: [1, 2, 7, 100, Int.max])
    func `a request and its answer pass whole however the bytes are cut`(cut: Int) throws {
        let peers = try MemoryPeers(cut: cut)
        let stream = try peers.client.request(.post, hasBody: true)
        #expect(peers.client.write(Array("hello".utf8).span, to: stream) == 5)
        peers.client.end(stream, trailers: HTTP2FieldList("x-sum", "5"))
        try peers.exchange()
        #expect(
            peers.serverSaw() == [
                "1 head :method=POST :scheme=http :path=/ :authority=api.test", "1 data hello",
                "1 trailers x-sum=5", "1 ended",
            ])
        try peers.server.interim(1, HTTP2FieldList(":status", "103", "link", "</a>"))
        try peers.server.answer(1, HTTP2FieldList(":status", "200"), hasBody: true)
        _ = peers.server.write(Array("world".utf8).span, to: 1)
        peers.server.end(1, trailers: HTTP2FieldList("grpc-status", "0"))
        try peers.exchange()
        #expect(
            peers.clientSaw() == [
                "1 sent", "1 interim :status=103 link=</a>", "1 head :status=200",
                "1 data world", "1 trailers grpc-status=0", "1 ended",
                "1 closed 0 whole",
            ])
        #expect(peers.client.openStreams == 0 && peers.server.openStreams == 0)
    }

    @Test func `a request whose head was not sent is taken back without a trace`() throws {
        let peers = try MemoryPeers()
        let sent = try peers.client.request(.post, hasBody: true)
        #expect(!peers.client.hasSentHead(of: sent))
        try peers.exchange()
        #expect(peers.client.hasSentHead(of: sent))
        let unsent = try peers.client.request(.post, hasBody: true)
        peers.client.reset(unsent, .cancel)
        let last = try peers.client.request(.post, hasBody: true)
        try peers.exchange()
        #expect(peers.client.hasSentHead(of: last))
        #expect(peers.serverSaw().map { $0.prefix(7) } == ["\(sent) head ", "\(last) head "])
    }

    @Test func `a body waits for its reader, and other streams go on`() throws {
        let peers = try MemoryPeers()
        peers.serverConsumes = false
        let slow = try peers.client.request(.post, hasBody: true)
        let body = [UInt8](repeating: 1, count: 300_000)
        var taken = peers.client.write(body.span, to: slow)
        #expect(taken == 65_536)
        try peers.exchange()
        taken += peers.client.write(body.span, to: slow)
        try peers.exchange()
        // The window is spent, and the buffer is full.
        #expect(taken == 131_072)
        #expect(peers.client.unsent(of: slow) == 65_536)
        let quick = try peers.client.request(.post, hasBody: true)
        _ = peers.client.write([7].span, to: quick)
        try peers.exchange()
        #expect(peers.serverSaw().contains("\(quick) data \u{7}"))
        peers.server.consume(slow, 65_536)
        try peers.exchange()
        #expect(peers.client.unsent(of: slow) == 0)
        #expect(peers.clientSaw().contains("\(slow) room"))
    }

    @Test func `a head that comes in two pieces behind large ones is whole`() throws {
        let peers = try MemoryPeers()
        try peers.exchange()
        let large = String(repeating: "v", count: 8000)
        for number in 0..<20 {
            _ = try peers.client.request(
                HTTP2FieldList(
                    ":method", "GET", ":scheme", "http", ":path", "/", ":authority", "a.test", "x-large",
                    "\(number)\(large)", "x-last", "\(number)\(large)"), hasBody: false)
        }
        var bytes = ByteBuffer()
        var answers = ByteBuffer()
        try peers.client.fill(&bytes, limit: 1 << 20)
        let first = copied(bytes.bytes.extracting(first: bytes.count - 100))
        let rest = copied(bytes.bytes.extracting(last: 100))
        var seen: [String] = []
        for piece in [first, rest] {
            var rest = piece
            repeat {
                let count = try peers.server.receive(rest.span, at: peers.now)
                while let event = peers.server.next() { seen.append(line(event, peers.server, rest)) }
                rest.removeFirst(count)
            } while !rest.isEmpty || peers.server.load.isPaused
            try peers.server.fill(&answers, limit: 1 << 20)
        }
        let heads = seen.filter { $0.contains(" head") }
        #expect(heads.count == 20)
        #expect(heads.last?.contains(":method=GET") == true && heads.last?.hasSuffix(" x-last=19\(large)") == true)
    }

    @Test func `heads that are huge together are all whole, because each is handled before the next`() throws {
        var settings = HTTP2Settings()
        settings.maxHeaderListBytes = 512 << 10
        let peers = try MemoryPeers(client: settings)
        let streams = try (0..<30).map { _ in try peers.client.request(.post, hasBody: false) }
        try peers.exchange()
        var list = HTTP2FieldList(":status", "200")
        // The encoder sends each but the first as one byte.
        let value = Array(String(repeating: "v", count: 3900).utf8)
        for _ in 0..<64 { list.append("x-b", value.span) }
        for stream in streams { try peers.server.answer(stream, list, hasBody: false) }
        try peers.exchange()
        let seen = peers.clientSaw()
        #expect(!seen.contains { $0.contains(" too large") })
        #expect(seen.count { $0.contains(" head") } == 30)
        #expect(!seen.contains { $0.contains(" trailers") })
    }

    @Test func `an early answer ends the stream with NO_ERROR`() throws {
        let peers = try MemoryPeers()
        let stream = try peers.client.request(.post, hasBody: true)
        try peers.exchange()
        try peers.server.answer(stream, HTTP2FieldList(":status", "413"), hasBody: true)
        _ = peers.server.write(Array("no".utf8).span, to: stream)
        peers.server.end(stream)
        try peers.exchange()
        #expect(
            peers.clientSaw().suffix(4) == [
                "1 head :status=413", "1 data no", "1 ended",
                "\(stream) closed 0 whole",
            ])
    }

    @Test func `a reset without an end is a cut, with its code`() throws {
        let peers = try MemoryPeers()
        let stream = try peers.client.request(.get, hasBody: false)
        try peers.exchange()
        try peers.server.answer(stream, HTTP2FieldList(":status", "200"), hasBody: true)
        try peers.exchange()
        peers.server.reset(stream, .noError)
        try peers.exchange()
        #expect(
            peers.clientSaw().suffix(2) == [
                "1 head :status=200",
                "\(stream) closed 0 cut",
            ])
    }

    @Test func `a field that holds a line end resets its stream`() throws {
        let peers = try MemoryPeers()
        for (name, value) in [("x", "a\nb"), ("x", "a\rb"), ("x", "a\0b"), ("x", " a"), ("x y", "a"), ("", "a")] {
            let fields = HTTP2FieldList(
                ":method", "GET", ":scheme", "http", ":path", "/", ":authority", "api.test", name, value)
            let stream = try peers.client.request(fields, hasBody: false)
            try peers.exchange()
            #expect(peers.serverSaw() == [])
            #expect(
                peers.clientSaw().last
                    == "\(stream) closed 1 cut")
        }
    }

    @Test func `a header list above the limit is told without its last fields`() throws {
        var settings = HTTP2Settings()
        settings.maxHeaderListBytes = 1000
        let peers = try MemoryPeers(server: settings)
        let fields = HTTP2FieldList(
            ":method", "GET", ":scheme", "http", ":path", "/", ":authority", "api.test", "x",
            String(repeating: "a", count: 900))
        let stream = try peers.client.request(fields, hasBody: false)
        try peers.exchange()
        #expect(peers.serverSaw().first?.hasPrefix("\(stream) head too large") == true)
    }

    @Test func `a head in several frames passes byte by byte`() throws {
        var settings = HTTP2Settings()
        settings.maxHeaderListBytes = 1 << 20
        let peers = try MemoryPeers(cut: 1, server: settings)
        var fields = HTTP2FieldList.get
        // A tilde takes 13 bits of Huffman's code, so it is sent as it is.
        let value = [UInt8](repeating: UInt8(ascii: "~"), count: 33_000)
        for name in ["x", "y", "z"] { fields.append(Array(name.utf8).span, value.span) }
        let stream = try peers.client.request(fields, hasBody: false)
        try peers.exchange()
        #expect(peers.serverSaw().first?.hasPrefix("\(stream) head :method=GET") == true)
    }

    @Test func `streams above the peer's limit are not opened`() throws {
        var settings = HTTP2Settings()
        settings.maxStreams = 2
        let peers = try MemoryPeers(server: settings)
        try peers.exchange()
        #expect(peers.client.peersMaxStreams == 2)
        for _ in 0..<2 {
            #expect(peers.client.canRequest)
            _ = try peers.client.request(.get, hasBody: false)
        }
        #expect(!peers.client.canRequest)
    }

    @Test func `a server that goes away lets open streams finish, and refuses others`() throws {
        let peers = try MemoryPeers()
        let stream = try peers.client.request(.get, hasBody: false)
        try peers.exchange()
        try peers.server.announceEnd()
        let late = try peers.client.request(.get, hasBody: false)
        try peers.exchange()
        #expect(!peers.client.canRequest)
        try peers.server.goAway(.noError)
        try peers.exchange()
        for id in [stream, late] { try peers.server.answer(id, HTTP2FieldList(":status", "204"), hasBody: false) }
        try peers.exchange()
        #expect(
            peers.clientSaw().suffix(1) == [
                "\(late) closed 0 whole"
            ])
        #expect(peers.server.isFinished)
        #expect(peers.client.isFinished)
    }

    @Test func `a PING is answered`() throws {
        let peers = try MemoryPeers()
        try peers.client.ping(0x0102_0304_0506_0708)
        try peers.exchange()
        #expect(peers.clientSaw().contains("pong \(0x0102_0304_0506_0708)"))
    }

    @Test func `field lines of HTTP/1.1 become fields of HTTP/2`() throws {
        var list = HTTP2FieldList()
        list.append(":status", Array("200".utf8).span)
        list.append {
            $0.append("Content-Type: text/plain\r\nConnection: x\r\nTransfer-Encoding: chunked\r\n")
            $0.append("Keep-Alive: a\r\nTE: gzip\r\nTe: trailers\r\nx:\r\nUpgrade: h2c\r\nDate:  now \r\n")
        }
        var lines: [String] = []
        list.forEach { lines.append(text($0) + "=" + text($1)) }
        #expect(lines == [":status=200", "Content-Type=text/plain", "Te=trailers", "x=", "Date=now"])
    }
}
