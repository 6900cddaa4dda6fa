import CurlTransport
import Proxy
import TestSupport
import Testing

@Suite(
    "an answer that breaks the grammar passes if it can be read in one way only", .stopsProxies, .timeLimit(.minutes(1))
)
struct IrregularAnswerTests {
    @Test(arguments: [
        (
            answer: "HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", body: "hello",
            lines: ["HTTP/1.1 200 ", "Content-Length: 5"]
        ),
        ("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n", "", ["HTTP/1.1 204 No"]),
        ("HTTP/1.1 204 No\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "", ["HTTP/1.1 204 No"]),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5  \r\nhello\r\n0 \r\n\r\n",
            "5\r\nhello\r\n0\r\n\r\n",
            ["HTTP/1.1 200 OK", "Transfer-Encoding: chunked"]
        ),
        (
            "HTTP/1.1 200 OK\r\nX-XSS-Protection : 1\r\nContent-Length: 5\r\n\r\nhello", "hello",
            ["HTTP/1.1 200 OK", "X-XSS-Protection: 1", "Content-Length: 5"]
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Length:   5\t\r\nConnection: close\r\n\r\nhello", "hello",
            ["HTTP/1.1 200 OK", "Content-Length: 5"]
        ),
    ])
    func `an answer that can be read in one way only comes out in regular form, and its connection is not used again`(
        answer: String, body: String, lines: [String]
    ) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try exchange.send(answer)
            _ = exchange.waitForPeerToLeave()
        }
        for _ in 0..<2 {
            let client = try await proxy.connect(sending: message())
            let head = try await client.read(until: "\r\n\r\n")
            let expected = (lines + ["Via: 1.1 heimdallr-proxy", "", ""]).joined(separator: "\r\n")
            #expect(head.split(separator: "\r\n").sorted() == expected.split(separator: "\r\n").sorted())
            if !body.isEmpty { #expect(try await client.read(count: body.utf8.count) == Array(body.utf8)) }
            // The program's own connection stays.
            try await client.send("GET http://nobody.test/ HTTP/1.1\r\nHost: nobody.test\r\n\r\n")
            #expect(try await client.response().status == 403)
        }
        #expect(proxy.origin.requests.map(\.connection) == [0, 1])
    }

    @Test(arguments: [
        ("X-A: b\u{1}c\r\n", "Check the upstream: A field value has the control character 0x01 (line 2, X-A)"),
        (
            "Content-Length: 5, 5\r\n",
            "Upstream: Content-Length is not a plain decimal number (line 2, Content-Length)"
        ),
        (
            "Access-Control-Allow-Credentials: b\u{1}c\r\n",
            "Check the upstream: A field value has the control character 0x01"
        ),
        (
            String(repeating: "X: y\r\n", count: 257),
            "Check the upstream: The head has more than 256 fields (line 258, X)"
        ),
    ])
    func `a refusal says which byte, field or limit it was`(fields: String, phrase: String) async throws {
        let failures = Recorder<UpstreamFailure>()
        var observer = ProxyObserver()
        observer.upstreamFailed = { failures.append($0) }
        let proxy = try await ProxyInProcess(observer: observer) { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\n\(fields)\r\n")
            exchange.close()
        }
        let response = try await proxy.request()
        #expect(response.status == 502)
        #expect(response.reason == phrase)
        let failure = try #require(failures.all.first)
        #expect(failure.error.message.contains("line "), "\(failure.error.message)")
        let sentence = String(failure.error.message.dropLast())
        #expect(response.text.contains("\"detail\":\"\(sentence)"), "\(response.text)")
        #expect(failure.advice.hasPrefix(sentence))
    }
}
