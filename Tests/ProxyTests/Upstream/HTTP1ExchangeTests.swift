import HTTPMessage
import HTTPServer
import Reactor
import Testing

@testable import Proxy

@Suite("one request and its answer in HTTP/1.1, without I/O")
struct HTTP1ExchangeTests {
    private struct Seen: Equatable {
        var statuses: [Int] = []
        var content: [UInt8] = []
        var isWhole = false
        /// Behind the answer.
        var excess = 0
        var isRefused = false
        var text: String { String(decoding: content, as: UTF8.self) }
    }

    private func exchange(
        _ upload: HTTP1Exchange.Upload = .none, isHead: Bool = false, expects: Bool = false, offers: Bool = false
    ) -> HTTP1Exchange {
        var exchange = HTTP1Exchange()
        exchange.begin(requestWasHead: isHead, upload: upload, expectsContinue: expects, offersUpgrade: offers)
        return exchange
    }

    /// Feeds an answer in pieces of `size` bytes.
    private func feed(_ exchange: inout HTTP1Exchange, _ text: String, by size: Int) -> Seen {
        let bytes = Array(text.utf8)
        var seen = Seen()
        var buffer = ByteBuffer()
        var start = 0
        feeding: while start < bytes.count {
            let end = min(bytes.count, start + size)
            buffer.append(Array(bytes[start..<end]))
            start = end
            var index = 0
            while true {
                let event: HTTP1Exchange.Event
                do throws(MessageError) { event = try exchange.next(buffer.bytes, from: index) } catch {
                    #expect(error.status == 502)
                    seen.isRefused = true
                    break feeding
                }
                switch event {
                case .needMore(let consumed):
                    buffer.consume(consumed)
                    continue feeding
                case .head(let consumed):
                    seen.statuses.append(exchange.head.status)
                    index = consumed
                case .content(let range, let consumed):
                    for position in range.range { seen.content.append(buffer.bytes[position]) }
                    index = consumed
                case .end(let consumed):
                    seen.isWhole = true
                    seen.excess = buffer.count - consumed + bytes.count - start
                    break feeding
                }
            }
        }
        return seen
    }

    private static let answers: [(text: String, statuses: [Int], content: String, isWhole: Bool)] = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", [200], "hello", true),
        ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", [200], "", true),
        ("HTTP/1.1 204 No\r\n\r\n", [204], "", true),
        ("HTTP/1.1 304 Same\r\nContent-Length: 7\r\n\r\n", [304], "", true),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1;a=b\r\n!\r\n0\r\nX: y\r\n\r\n", [200],
            "hello!", true
        ),
        (
            "HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
            [100, 103, 200], "ok", true
        ),
        ("HTTP/1.1 200 OK\r\n\r\nto the end", [200], "to the end", false),
        ("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello", [200], "hello", false),
    ]

    @Test(arguments: [1, 2, 3, 7, 1000])
    func `an answer means the same in whatever pieces it comes`(size: Int) {
        for answer in Self.answers {
            var exchange = exchange()
            let seen = feed(&exchange, answer.text, by: size)
            #expect(seen.statuses == answer.statuses)
            #expect(seen.text == answer.content)
            #expect(seen.isWhole == answer.isWhole && exchange.isWhole == answer.isWhole)
            #expect(!seen.isRefused && seen.excess == 0)
        }
    }

    @Test func `a connection serves again only if request and answer were whole and nobody ended it`() {
        func keeps(_ text: String, _ upload: HTTP1Exchange.Upload = .none, sends: Int = 0) -> Bool {
            var exchange = exchange(upload)
            exchange.sent(sends)
            _ = feed(&exchange, text, by: 1000)
            return exchange.keepsConnection
        }
        let ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        #expect(keeps(ok))
        #expect(!keeps("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
        #expect(!keeps("HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok"))
        #expect(!keeps("HTTP/1.1 200 OK\r\n\r\nok"))
        #expect(!keeps("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nok"))
        #expect(keeps(ok, .length(5), sends: 5))
        #expect(!keeps(ok, .length(5), sends: 4))
        #expect(!keeps("HTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n", .length(5), sends: 4))
        #expect(!keeps(ok, .chunked))
        // Answers that break the grammar.
        #expect(!keeps("HTTP/1.1 200\r\nContent-Length: 2\r\n\r\nok"))
        #expect(!keeps("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n"))
        #expect(!keeps("HTTP/1.1 103\r\n\r\n" + ok))
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        #expect(keeps(chunked + "2\r\nok\r\n0\r\n\r\n"))
        #expect(!keeps(chunked + "2 \r\nok\r\n0\r\n\r\n"))
    }

    @Test func `a switch of protocols comes after the whole request`() {
        let agreement = "HTTP/1.1 101 X\r\nConnection: upgrade\r\nUpgrade: tcp\r\n\r\n"
        for upload in [HTTP1Exchange.Upload.length(2), .chunked] {
            var early = exchange(upload, offers: true)
            early.sent(1)
            #expect(feed(&early, agreement, by: 1000).isRefused)
            var whole = exchange(upload, offers: true)
            whole.sent(2)
            let isWhole = whole.endUpload()
            #expect(isWhole)
            #expect(!feed(&whole, agreement + "raw", by: 1000).isRefused)
            #expect(whole.isSwitched && whole.wantsUpload)
        }
    }

    @Test(arguments: [1, 4, 9, 100]) func `the first frame of HTTP 2 is told from other bytes`(size: Int) {
        func refusal(_ bytes: [UInt8]) -> MessageError? {
            var exchange = exchange()
            for count in stride(from: min(size, bytes.count), through: bytes.count, by: size) {
                do throws(MessageError) { _ = try exchange.next(bytes.span.extracting(first: count), from: 0) } catch {
                    return error
                }
            }
            return nil
        }
        let settings: [UInt8] = [0, 0, 12, 4, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 100, 0, 4, 0, 10, 0, 0]
        #expect(refusal(settings + Array(repeating: 0, count: 100)) == HTTP1Exchange.http2Only)
        let others: [[UInt8]] = [
            [0, 0, 13, 4, 0, 0, 0, 0, 0], [0, 0, 12, 6, 0, 0, 0, 0, 0], [0, 0, 12, 4, 1, 0, 0, 0, 0],
            [0, 0, 12, 4, 0, 0, 0, 0, 1], [1, 0, 12, 4, 0, 0, 0, 0, 0],
        ]
        for other in others {
            let error = refusal(other + Array(repeating: 10, count: 100))
            #expect(error != nil && error != HTTP1Exchange.http2Only)
        }
    }

    @Test func `interim answers, heads and trailers of an answer are bounded`() {
        var many = exchange()
        let interim = String(repeating: "HTTP/1.1 103 Hints\r\n\r\n", count: 33)
        let seen = feed(&many, interim, by: 1000)
        #expect(seen.isRefused && seen.statuses.count == 32)
        for size in [1000, 100_000] {
            var long = exchange()
            #expect(feed(&long, "HTTP/1.1 200 " + String(repeating: "x", count: 200_000), by: size).isRefused)
            var fields = exchange()
            let lines = String(repeating: "X: \(String(repeating: "x", count: 5000))\r\n", count: 60)
            #expect(feed(&fields, "HTTP/1.1 200 OK\r\n\(lines)\r\n", by: size).isRefused)
        }
    }

    @Test func `a line that arrives byte by byte is searched once`() {
        // 100 KB byte by byte: without a mark of how far it was read, this would take minutes.
        var slow = exchange()
        #expect(!feed(&slow, "HTTP/1.1 200 OK\r\nX: " + String(repeating: "x", count: 90_000), by: 1).isRefused)
    }

    @Test func `only trailers that may pass are kept`() {
        var exchange = exchange()
        _ = feed(
            &exchange,
            "HTTP/1.1 200 OK\r\nConnection: X-Hop\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-End: 1\r\nX-Hop: 2\r\n"
                + "Content-Length: 3\r\n\r\n", by: 4)
        #expect(exchange.trailers.map { String(decoding: $0.name, as: UTF8.self) } == ["X-End"])
    }

    @Test(arguments: [true, false])
    func `an early answer behind 100 Continue does not stop the body`(isContinued: Bool) {
        var exchange = exchange(.length(10), expects: true)
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"
        _ = feed(&exchange, (isContinued ? "HTTP/1.1 100 Continue\r\n\r\n" : "") + answer, by: 1000)
        #expect(exchange.wantsUpload == isContinued)
        #expect(exchange.isUploadStopped != isContinued)
    }
}
