import TestSupport
import Testing

@Suite(
    "over TLS and HTTP 2, too, an answer is whole or recognisably not", .stopsProxies, .serialized,
    .timeLimit(.minutes(1)))
struct SecureAnswerTests {
    /// Answers by the request's path and then leaves: in order (with close_notify), or without a word.
    private static let server = #"""
        import socket, ssl, sys, threading
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        def serve(raw):
            connection = context.wrap_socket(raw, server_side=True, suppress_ragged_eofs=True)
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                head += connection.recv(4096)
            path = head.split()[1]
            framing = {b"/length": b"Content-Length: 100\r\n", b"/chunked": b"Transfer-Encoding: chunked\r\n"}
            body = b"5\r\nhello\r\n" if path == b"/chunked" else b"hello"
            connection.sendall(b"HTTP/1.1 200 OK\r\n" + framing.get(path, b"") + b"\r\n" + body)
            if path == b"/whole":
                connection.unwrap()
            raw = connection.detach()
            socket.socket(fileno=raw).close()
        while True:
            raw, _ = listener.accept()
            threading.Thread(target=serve, args=(raw,), daemon=True).start()
        """#

    private func serverAndProxy() async throws -> (TLSServerProcess, ProxyInProcess) {
        let server = try await TLSServerProcess(["/usr/bin/python3", "-c", Self.server])
        let proxy = try await ProxyInProcess(
            more: """
                - host: secure.test
                  url: https://localhost:\(server.port)
                  client: api
                  tls: {ca_file: \(server.authority.certificateFile)}
                """)
        return (server, proxy)
    }

    /// RFC 9112, 9.8: the end of the connection is the end of the body only after close_notify.
    @Test(arguments: [("whole", true), ("cut", false), ("length", false), ("chunked", false)])
    func `a body that ends by closing is whole only if TLS says so`(path: String, isWhole: Bool) async throws {
        let (server, proxy) = try await serverAndProxy()
        for version in ["1.1", "1.0"] {
            let client = try await proxy.connect()
            try await client.send("GET http://secure.test/\(path) HTTP/\(version)\r\nHost: secure.test\r\n\r\n")
            if isWhole {
                #expect(try await client.response().text == "hello")
            } else {
                await #expect(throws: (any Error).self) { try await client.response() }
            }
        }
        try await server.process.stop()
    }

    @Test func `https in the target, where the upstream is https`() async throws {
        let (server, proxy) = try await serverAndProxy()
        let response = try await proxy.send("GET https://secure.test/whole HTTP/1.1\r\nHost: other.test\r\n\r\n")
        #expect(response.text == "hello")
        try expectProblem(
            try await proxy.send("GET https://api.test/ HTTP/1.1\r\nHost: secure.test\r\n\r\n"), 400,
            "http_request_error", "scheme-not-supported")
        #expect(proxy.origin.connections.isEmpty)
        try await server.process.stop()
    }

    @Test(arguments: ["Content-Length: 4000000", "Transfer-Encoding: chunked"])
    func `an HTTP 2 upstream that refuses in the middle of an upload is heard at once`(framing: String) async throws {
        let authority = try await PrivateCA()
        let nginx = try await Nginx(
            certificate: try await authority.server(),
            locations: Nginx.sayWhatArrived + "\nlocation /deny { return 403 'not here'; }")
        let proxy = try await ProxyInProcess(
            more: """
                - host: two.test
                  url: https://localhost:\(nginx.httpsPort)
                  client: api
                  http2: true
                  tls: {ca_file: \(authority.certificateFile)}
                """)
        for _ in 0..<3 {
            let client = try await proxy.connect()
            let piece = framing.hasPrefix("T") ? "5\r\nfirst\r\n" : "first"
            try await client.send(
                "PUT http://two.test/deny HTTP/1.1\r\nHost: two.test\r\n\(framing)\r\n\r\n\(piece)")
            // The rest never comes.
            let response = try await client.response()
            #expect(response.status == 403)
            #expect(response.text == "not here")
            #expect(response.field("Connection") == "close")
            #expect(try await client.readToEnd().isEmpty)
        }
        #expect(try await proxy.request("GET", "http://two.test/x").text.contains("protocol: HTTP/2.0\n"))
    }
}
