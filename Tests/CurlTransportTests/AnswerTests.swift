import CurlTransport
import TestSupport
import Testing

@Suite("an answer is told as it came", .timeLimit(.minutes(1)))
struct AnswerTests {
    private func send(_ answer: String, to method: String = "GET", closing: Bool = false) async throws -> Probe.Record {
        let origin = try RecordingOrigin { exchange in
            try exchange.readBody()
            try exchange.send(answer)
            if closing { exchange.close() }
        }
        return try await ConnectionPoolOnLoop().send(Request(origin, method))
    }

    @Test func `line by line, interim answers first, trailers last`() async throws {
        let record = try await send(
            "HTTP/1.1 103 Hints\r\nLink: x\r\n\r\nHTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 Fine  then\r\nX:  y \r\n"
                + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nX-End: 1\r\nX-More:2\r\n\r\n")
        #expect(record.error == nil)
        #expect(
            record.lines.prefix(9) == [
                "HTTP/1.1 103 Hints", "Link: x", "", "HTTP/1.1 100 Continue", "", "HTTP/1.1 200 Fine  then", "X:  y ",
                "Transfer-Encoding: chunked", "",
            ])
        #expect(record.lines.dropFirst(9).filter { !$0.isEmpty } == ["X-End: 1", "X-More:2"])
        #expect(record.text == "abcde")
        #expect(record.ends == 1)
    }

    @Test(arguments: [
        ("HEAD", "200 OK\r\nContent-Length: 100\r\n"), ("GET", "204 None\r\n"),
        ("GET", "304 Same\r\nContent-Length: 9\r\n"),
        ("GET", "200 OK\r\nContent-Length: 0\r\n"), ("POST", "200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"),
    ])
    func `without a body`(method: String, answer: String) async throws {
        let record = try await send("HTTP/1.1 \(answer)\r\n", to: method)
        #expect(record.error == nil)
        #expect(record.body.isEmpty)
        #expect(record.lines.contains(""))
    }

    @Test func `to the end of the connection`() async throws {
        let record = try await send("HTTP/1.1 200 OK\r\n\r\nall of it", closing: true)
        #expect(record.error == nil)
        #expect(record.text == "all of it")
    }

    @Test func `a head that is cut at its end lacks its blank line`() async throws {
        for cut in ["HTTP/1.1 200 OK\r\n", "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"] {
            let record = try await send(cut, closing: true)
            // libcurl is content; who listens has to look.
            #expect(record.error != nil || !record.lines.contains(""))
        }
    }

    @Test(arguments: [200, 404, 413, 500])
    func `early, while the request is still on its way`(status: Int) async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send("HTTP/1.1 \(status) Early\r\nContent-Length: 5\r\n\r\nearly")
            _ = try? exchange.readBody()
        }
        let pool = try await ConnectionPoolOnLoop()
        var request = Request(origin, "POST")
        request.upload = .fed(known: 10)
        let probe = try await pool.start(request)
        try await probe.feed([1, 2, 3, 4, 5])
        try await eventually("the answer") { probe.record.text == "early" }
        if status < 300 {
            try await probe.feed([6, 7, 8, 9, 10])
            #expect(try await probe.ended().error == nil)
            #expect(try await origin.completeRequests(1).first?.body == Array(1...10))
        } else {
            // Nobody wants the rest: the exchange ends without it.
            #expect(try await probe.ended().error == nil)
            #expect(origin.requests.first?.isComplete == false)
        }
    }

    @Test func `Expect: the body waits for 100, and a refusal is the end`() async throws {
        let origin = try RecordingOrigin { exchange in
            if exchange.head.target == "/no" {
                try exchange.send("HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")
                _ = exchange.waitForPeerToLeave()
            } else {
                try exchange.send("HTTP/1.1 100 Continue\r\n\r\n")
                try exchange.respond(body: "\(try exchange.readBody().bodyCount)")
            }
        }
        let pool = try await ConnectionPoolOnLoop()
        var request = Request(origin, "POST", "/yes")
        request.upload = .bytes([1, 2, 3])
        request.fields = [("Expect", "100-continue")]
        #expect(try await pool.send(request).text == "3")
        request.target = "/no"
        let record = try await pool.send(request)
        #expect(record.status == "HTTP/1.1 403 No")
        #expect(record.error == nil)
        #expect(origin.requests.map(\.bodyCount) == [3, 0])
    }
}
