import Cryptography
import Proxy
import TestSupport
import Testing

@Suite("an answer that is cut arrives as far as it came", .stopsProxies, .timeLimit(.minutes(1)))
struct CutAnswerTests {
    enum Framing: CaseIterable, Sendable {
        case length, chunks

        func send(_ count: Int, by exchange: OriginExchange) throws {
            let body = String(repeating: "x", count: count)
            switch self {
            case .length: try exchange.send("HTTP/1.1 200 OK\r\nContent-Length: 900000\r\n\r\n\(body)")
            case .chunks:
                try exchange.startChunked()
                try exchange.chunk(body)
            }
        }
    }

    /// Number of the body's bytes, without the marks of chunks.
    private func bodyCount(_ answer: [UInt8]) throws -> Int {
        let text = String(decoding: answer, as: UTF8.self)
        let head = try #require(text.firstRange(of: "\r\n\r\n"), "\(text.prefix(200))")
        #expect(text.hasPrefix("HTTP/1.1 200 OK\r\n") || text.hasPrefix("HTTP/1.1 200 Answer\r\n"))
        #expect(!text.hasSuffix("\r\n0\r\n\r\n"))
        return text[head.upperBound...].count { $0 == "x" }
    }

    @Test(arguments: Framing.allCases, [(count: 500, reset: true), (count: 300_000, reset: false)])
    func `a client gets each byte of a cut answer, and a reset only where an end would look whole`(
        framing: Framing, cut: (count: Int, reset: Bool)
    ) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try framing.send(cut.count, by: exchange)
            cut.reset ? exchange.reset() : exchange.close()
        }
        for version in ["HTTP/1.1", "HTTP/1.0"] {
            let client = try await proxy.connect(
                receiveBuffer: 4096, sending: "GET / \(version)\r\nHost: api.test\r\n\r\n")
            // A short answer waits in the client's kernel until the cut is over.
            if cut.count < 4096 { try await proxy.isOver() }
            let (answer, isReset) = try await client.readWithEnd()
            #expect(try bodyCount(answer) == cut.count, "\(version)")
            // In HTTP/1.0, only the connection's end tells the end of a body without a length.
            #expect(isReset == (version == "HTTP/1.0" && framing == .chunks), "\(version)")
        }
    }

    @Test(arguments: Framing.allCases)
    func `bytes that the client has sent and nobody read do no harm to a cut answer`(framing: Framing) async throws {
        let proxy = try await ProxyInProcess { exchange in
            try framing.send(500, by: exchange)
            exchange.close()
        }
        let client = try await proxy.connect(sending: message() + message())
        try await proxy.isOver()
        let (answer, isReset) = try await client.readWithEnd()
        #expect(try bodyCount(answer) == 500)
        #expect(!isReset)
    }

    @Test(arguments: Framing.allCases)
    func `a client over TLS gets each byte of a cut answer, and no close_notify`(framing: Framing) async throws {
        let proxy = try await ProxyInProcess(upstream: "intercept: true") { exchange in
            try framing.send(500, by: exchange)
            exchange.close()
        }
        let folder = try TemporaryDirectory()
        let roots = try folder.write(try #require(proxy.server.interception).rootsPEM, to: "roots.pem")
        let output = try await ChildProcess.output(of: [
            "/usr/bin/python3", "-c", Self.client, "\(proxy.port)", roots,
        ])
        #expect(output == "500 cut\n")
    }

    /// Prints how many bytes `x` came, and how TLS ended.
    private static let client = #"""
        import socket, ssl, sys
        raw = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
        raw.sendall(b"CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n")
        assert raw.recv(4096).startswith(b"HTTP/1.1 200")
        context = ssl.create_default_context(cafile=sys.argv[2])
        # SSL_OP_IGNORE_UNEXPECTED_EOF, which Python sets
        context.options &= ~(1 << 7)
        tls = context.wrap_socket(raw, server_hostname="api.test", suppress_ragged_eofs=False)
        tls.sendall(b"GET / HTTP/1.1\r\nHost: api.test\r\n\r\n")
        answer, end = b"", "close_notify"
        try:
            while piece := tls.recv(4096):
                answer += piece
        except ssl.SSLError:
            end = "cut"
        except ConnectionError:
            end = "reset"
        print(answer.partition(b"\r\n\r\n")[2].count(b"x"), end)
        """#

    @Test(arguments: BytePipe.Kind.allCases)
    func `a client gets each byte before an upstream's reset, and then a reset`(
        kind: BytePipe.Kind
    ) async throws {
        let pipe = try await BytePipe(kind)
        var (client, end): (RawClient, RawClient?) = try await pipe.open(receiveBuffer: 4096)
        let sent = pattern(200_000, step: 31)
        try await end?.send(sent)
        try await end?.isRead()
        end?.resetOnClose()
        end = nil
        // The client has room for a part only, so the rest waits in the proxy.
        try await client.isStuck()
        let (bytes, isReset) = try await client.readWithEnd()
        #expect(bytes == sent)
        #expect(isReset)
    }
}
