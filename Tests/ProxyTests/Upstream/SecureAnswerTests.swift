import Proxy
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

    /// A proxy in front of a server that runs this script, as `secure.test`.
    private func proxy(
        _ script: String, _ arguments: [String] = [], _ more: String = "", observer: ProxyObserver = ProxyObserver()
    ) async throws -> ProxyInProcess {
        let server = try await TLSServerProcess(["/usr/bin/python3", "-c", script], arguments)
        return try await ProxyInProcess(
            more: secureUpstream("secure.test", server.port, server.authority, more), observer: observer, peer: server)
    }

    /// RFC 9112, 9.8: the end of the connection is the end of the body only after close_notify.
    @Test(arguments: [("whole", true), ("cut", false), ("length", false), ("chunked", false)])
    func `a body that ends by closing is whole only if TLS says so`(path: String, isWhole: Bool) async throws {
        let failures = Recorder<UpstreamFailure>()
        var observer = ProxyObserver()
        observer.upstreamFailed = { failures.append($0) }
        let proxy = try await proxy(Self.server, observer: observer)
        for version in ["1.1", "1.0"] {
            let client = try await proxy.connect(
                sending: "GET http://secure.test/\(path) HTTP/\(version)\r\nHost: secure.test\r\n\r\n")
            if isWhole {
                #expect(try await client.response().text == "hello")
            } else {
                await #expect(throws: (any Error).self) { try await client.response() }
            }
        }
        #expect(failures.all.count == (isWhole ? 0 : 2))
        if path == "cut" {
            #expect(
                failures.all.allSatisfy { $0.reason.contains("close_notify") && $0.advice.contains("Content-Length") })
        }
    }

    @Test func `an https target is forwarded where the upstream is https`() async throws {
        let proxy = try await proxy(Self.server)
        let response = try await proxy.send("GET https://secure.test/whole HTTP/1.1\r\nHost: other.test\r\n\r\n")
        #expect(response.text == "hello")
        try expectProblem(
            try await proxy.send("GET https://api.test/ HTTP/1.1\r\nHost: secure.test\r\n\r\n"), "scheme-not-supported")
        #expect(proxy.origin.connections.isEmpty)
    }

    @Test(arguments: ["Content-Length: 4000000", "Transfer-Encoding: chunked"])
    func `an HTTP 2 upstream that refuses in the middle of an upload is heard at once`(framing: String) async throws {
        let nginx = try await Nginx.secure(
            locations: Nginx.sayWhatArrived + "\nlocation /deny { return 403 'not here'; }")
        let proxy = try await ProxyInProcess(
            more: secureUpstream("two.test", nginx.httpsPort, nginx.authority, "http2: true"))
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

    /// Answers without a length and then sends session tickets for as long as it can: TLS without end, and no end of TLS.
    private static let ticketServer = #"""
        import ctypes, socket, sys
        library = ctypes.CDLL("libssl.so.3")
        def call(name, *arguments, of=ctypes.c_void_p):
            function = getattr(library, name)
            function.restype = of
            return function(*arguments)
        context = ctypes.c_void_p(call("SSL_CTX_new", ctypes.c_void_p(call("TLS_server_method"))))
        call("SSL_CTX_use_certificate_chain_file", context, sys.argv[1].encode())
        call("SSL_CTX_use_PrivateKey_file", context, sys.argv[2].encode(), 1)
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        connection, _ = listener.accept()
        tls = ctypes.c_void_p(call("SSL_new", context))
        call("SSL_set_fd", tls, connection.fileno())
        call("SSL_accept", tls)
        call("SSL_read", tls, ctypes.create_string_buffer(65536), 65536)
        answer = b"HTTP/1.1 200 OK\r\n\r\nhello"
        call("SSL_write", tls, answer, len(answer))
        while call("SSL_new_session_ticket", tls, of=ctypes.c_int) == 1:
            if call("SSL_do_handshake", tls, of=ctypes.c_int) != 1:
                break
        """#

    @Test func `a body that ends because nothing but TLS came is cut`() async throws {
        let server = try await TLSServerProcess(["/usr/bin/python3", "-c", Self.ticketServer])
        let proxy = try await ProxyInProcess(
            more: secureUpstream("secure.test", server.port, server.authority), peer: server)
        let client = try await proxy.connect(sending: "GET http://secure.test/ HTTP/1.1\r\nHost: secure.test\r\n\r\n")
        // A chunked answer that is whole ends in its last chunk; one that is cut ends in a reset, perhaps before "hello" is read.
        var rest: [UInt8]?
        if (try? await client.read(until: "hello")) != nil {
            // More tickets wait then than 10 ms are enough for.
            let held = Gate()
            await proxy.holdLoop(until: held)
            _ = try await settled("no more tickets come") { try unreadBytes(from: server.port) }
            held.open()
            rest = try? await client.readToEnd()
        }
        #expect(rest.map { !String(decoding: $0, as: UTF8.self).contains("0\r\n\r\n") } ?? true)
    }

    /// Begins an answer over HTTP/2 and ends it as its arguments say: how, and whether with a Content-Length.
    private static let frameServer = #"""
        import socket, ssl, struct, sys
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        context.set_alpn_protocols(["h2"])
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        def frame(kind, flags, stream, payload=b""):
            return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload
        ends = {
            "end": lambda stream: frame(0, 1, stream),
            "reset": lambda stream: frame(3, 0, stream, struct.pack(">I", 0)),
            "end, reset": lambda stream: frame(0, 1, stream) + frame(3, 0, stream, struct.pack(">I", 0)),
            "size": lambda stream: frame(0, 1, stream, b"x" * 20000),
            "padding": lambda stream: frame(0, 8, stream, b"\xffabc"),
            "close": lambda stream: b"",
        }
        length = b"\x0f\x0d\x03100" if sys.argv[4] == "length" else b""
        while True:
            raw, _ = listener.accept()
            connection = context.wrap_socket(raw, server_side=True)
            reader = connection.makefile("rb")
            reader.read(24)
            connection.sendall(frame(4, 0, 0))
            while True:
                head = reader.read(9)
                if len(head) < 9:
                    break
                reader.read(int.from_bytes(head[:3], "big"))
                if head[3] == 1:
                    stream = int.from_bytes(head[5:], "big")
                    connection.sendall(frame(1, 4, stream, b"\x88" + length) + frame(0, 0, stream, b"hello"))
                    connection.sendall(ends[sys.argv[3]](stream))
                    if sys.argv[3] == "close":
                        connection.unwrap().close()
                        break
        """#

    @Test(arguments: ["reset", "size", "padding", "close"])
    func `over HTTP 2 a body of a known length that is cut is no whole answer`(end: String) async throws {
        let proxy = try await proxy(Self.frameServer, [end, "length"], "http2: true")
        await #expect(throws: (any Error).self) { try await proxy.request("GET", "http://secure.test/") }
    }

    @Test(arguments: [
        ("end", true), ("end, reset", true), ("close", false), ("reset", false), ("size", false), ("padding", false),
    ])
    func `a body of unknown length over HTTP 2 ends by its own end alone`(end: String, isWhole: Bool) async throws {
        let proxy = try await proxy(Self.frameServer, [end, "none"], "http2: true")
        let text = try? await proxy.request("GET", "http://secure.test/").text
        #expect((text == "hello") == isWhole)
    }
}
