import CurlTransport
import TestSupport
import Testing

@Suite("a failed exchange says whose fault it was", .timeLimit(.minutes(1)))
struct FailureTests {
    @Test func `a call to a name that does not resolve fails as nameNotResolved`() async throws {
        let pool = try Calls()
        let record = try await pool.send(Request(.plain(80, host: "does-not-exist.invalid")))
        #expect(record.error?.kind == .nameNotResolved)
    }

    @Test func `a call to a port where nobody listens fails as connectionRefused`() async throws {
        let pool = try Calls()
        #expect(try await pool.send(Request(.plain(try freePort()))).error?.kind == .connectionRefused)
    }

    @Test func `a call to a host that does not take the connection fails as connectionTimedOut`() async throws {
        let deaf = try DeafPort()
        let pool = try Calls { $0.connectTimeout = .milliseconds(200) }
        #expect(try await pool.send(Request(.plain(deaf.port))).error?.kind == .connectionTimedOut)
    }

    @Test func `a server that leaves in the TLS handshake, or stalls in it, is told apart`() async throws {
        let leaving = try Listener { $0.close() }
        let pool = try Calls { $0.connectTimeout = .milliseconds(300) }
        let kind = try await pool.send(Request(.secure(leaving.port))).error?.kind
        #expect(kind == .tlsHandshake)
        let silent = try DeafPort()
        #expect(try await pool.send(Request(.secure(silent.port))).error?.kind == .connectionTimedOut)
    }

    @Test func `a call over TLS to a server that does not speak it fails as tlsHandshake`() async throws {
        let nginx = try await Nginx()
        let pool = try Calls()
        #expect(try await pool.send(Request(.secure(nginx.httpPort))).error?.kind == .tlsHandshake)
    }

    @Test(arguments: [true, false])
    func `a call whose server takes the request and leaves fails as a lost connection`(reset: Bool) async throws {
        let origin = try RecordingOrigin { reset ? $0.reset() : $0.close() }
        let pool = try Calls()
        let record = try await pool.send(Request(origin))
        #expect(record.error?.kind == .connectionLost)
        #expect(origin.requests.count == 1)
    }

    @Test(
        arguments: [
            "Content-Length: 100\r\n\r\nhalf", "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n",
            "Transfer-Encoding: chunked\r\n\r\n4\r\nhalf\r\n0\r\n", "Transfer-Encoding: chunked\r\n\r\n5\r\nhalf",
        ], [true, false])
    func `a call whose answer is cut fails`(answer: String, reset: Bool) async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\n\(answer)")
            reset ? exchange.reset() : exchange.close()
        }
        let pool = try Calls()
        #expect(try await pool.send(Request(origin)).error?.kind == .responseTruncated)
    }

    @Test(arguments: [
        "garbage\r\n\r\n", "HTTP/1.1 abc\r\n\r\n", "HTTP/1.3 200 OK\r\n\r\n", "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: \0\r\n\r\n", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded\r\n\r\n",
    ])
    func `a call whose answer is not HTTP fails`(answer: String) async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send(answer)
            exchange.close()
        }
        let pool = try Calls()
        let record = try await pool.send(Request(origin))
        #expect(record.error?.kind == .responseMalformed)
        #expect(record.text.isEmpty)
    }

    @Test(arguments: ["zz\r\n", "4\r\nhalfgarbage", "ffffffffffffffffff\r\n"])
    func `a call whose answer has a broken chunk fails`(chunk: String) async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\(chunk)")
            exchange.close()
        }
        let pool = try Calls()
        let kind = try await pool.send(Request(origin)).error?.kind
        #expect(kind == .responseTruncated || kind == .responseMalformed)
    }

    @Test func `a call whose answer has a head without end fails`() async throws {
        let origin = try RecordingOrigin { exchange in
            try exchange.send("HTTP/1.1 200 OK\r\n")
            while true { try exchange.send("X-More: \(String(repeating: "x", count: 1000))\r\n") }
        }
        let pool = try Calls()
        #expect(try await pool.send(Request(origin)).error != nil)
    }

    @Test func `the message of an error says what libcurl said`() async throws {
        let pool = try Calls()
        let error = try await pool.send(Request(.plain(80, host: "does-not-exist.invalid"))).error
        #expect(error?.description.contains("does-not-exist.invalid") == true)
    }
}
