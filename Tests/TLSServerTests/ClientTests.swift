import Foundation
import TLSServer
import TestSupport
import Testing

@Suite("Real programs are served over TLS", .timeLimit(.minutes(3)))
struct ClientTests {
    @Test(arguments: [["--tls-max", "1.2"], ["--tlsv1.3"]])
    func `curl sends and gets five megabytes, and keeps its connection`(version: [String]) async throws {
        let server = try await SecureServer()
        let folder = try TemporaryDirectory()
        let body = (0..<5_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        let file = try folder.write(body, to: "body")
        let url = "https://localhost:\(server.port)/"
        let output = try await ChildProcess.output(
            of: ["curl", "-sS", "--http1.1", "--cacert", server.hosts.authority.certificateFile] + version + [
                "--data-binary", "@\(file)", "-w", "%{http_code} %{num_connects}\n", "-o", folder.path(of: "first"),
                "-o", folder.path(of: "second"), url + "a", url + "b",
            ])
        #expect(output == "200 1\n200 0\n")
        for name in ["first", "second"] {
            #expect(try [UInt8](Data(contentsOf: URL(fileURLWithPath: folder.path(of: name)))) == body)
        }
        let expected = version[0] == "--tlsv1.3" ? "TLSv1.3" : "TLSv1.2"
        #expect(
            server.ends == [.done(version: expected, applicationProtocol: "http/1.1", serverName: "localhost")])
    }

    @Test func `curl does not trust an authority that it does not know, and we hear that`() async throws {
        let server = try await SecureServer()
        let child = try await ChildProcess.run(["curl", "-sS", "https://localhost:\(server.port)/"])
        #expect(child.ending == .exited(60))
        try await eventually("the alert") { server.ends == [.alert(TLSAlert(number: 48))] }
        try await eventually("the connection's end") { try await server.count() == 0 }
    }

    @Test func `Python gets its answer, and each side ends in order`() async throws {
        let server = try await SecureServer()
        let output = try await python(
            """
            sock = context.wrap_socket(raw, server_hostname='localhost', suppress_ragged_eofs=False)
            sock.sendall(b'GET /path HTTP/1.1\\r\\nHost: h\\r\\nConnection: close\\r\\n\\r\\n')
            answer = b''
            while piece := sock.recv(1000): answer += piece
            sock.unwrap()
            print(answer.decode().rpartition('\\r\\n')[2])
            """, server)
        #expect(output == "/path\n")
    }

    @Test func `a client that ends its side behind its request gets the answer`() async throws {
        let server = try await SecureServer()
        let output = try await python(
            """
            tls.write(b'GET /half HTTP/1.1\\r\\nHost: h\\r\\n\\r\\n')
            print(len(rest(True)) > 100)
            """, server, inMemory: true)
        #expect(output == "True\n")
    }

    @Test(arguments: [true, false])
    func `an end inside a body makes no request of it`(isOrderly: Bool) async throws {
        let server = try await SecureServer()
        let output = try await python(
            """
            tls.write(b'POST / HTTP/1.1\\r\\nHost: h\\r\\nContent-Length: 100\\r\\n\\r\\nfew')
            print(len(rest(\(isOrderly ? "True" : "False"))) > 100)
            """, server, inMemory: true)
        #expect(output == "False\n")
        try await eventually("the connection's end") { try await server.count() == 0 }
    }

    @Test(arguments: ["-tls1_1", "-tls1"])
    func `old versions of TLS are refused`(version: String) async throws {
        let server = try await SecureServer()
        let child = try await openssl([version, "-cipher", "DEFAULT@SECLEVEL=0"], server)
        #expect(child.ending == .exited(1))
        #expect(child.errors.contains("alert protocol version"))
    }

    @Test func `openssl negotiates http/1.1, h2 where it offers that alone, or fails`() async throws {
        let server = try await SecureServer()
        let both = try await openssl(["-alpn", "h2,http/1.1"], server)
        #expect(both.output.contains("ALPN protocol: http/1.1") && both.output.contains("Verification: OK"))
        let none = try await openssl([], server)
        #expect(none.output.contains("No ALPN negotiated") && none.output.contains("Compression: NONE"))
        let newer = try await openssl(["-alpn", "h2"], server)
        #expect(newer.output.contains("ALPN protocol: h2") && newer.output.contains("Verification: OK"))
        let wrong = try await openssl(["-alpn", "h3,spdy/1"], server)
        #expect(wrong.errors.contains("alert no application protocol") && wrong.ending == .exited(1))
        let unknown = try await openssl(["-servername", "nobody.test"], server)
        #expect(unknown.errors.contains("unrecognized name") && unknown.ending == .exited(1))
    }

    @Test func `openssl can't renegotiate`() async throws {
        let server = try await SecureServer()
        let child = try await openssl(["-tls1_2"], server, input: "R\n")
        #expect(child.errors.contains("RENEGOTIATING"))
        #expect(child.errors.contains("no renegotiation"))
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a session is resumed, but not under another name`(version: String) async throws {
        let server = try await SecureServer()
        let folder = try TemporaryDirectory()
        let file = folder.path(of: "session")
        let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        let first = try await openssl([version, "-sess_out", file, "-ign_eof"], server, input: request)
        #expect(first.output.contains("New, TLSv"))
        let again = try await openssl([version, "-sess_in", file], server)
        #expect(again.output.contains("Reused, TLSv"))
        let other = try await openssl([version, "-sess_in", file, "-servername", "two.test"], server)
        #expect(other.output.contains("New, TLSv") && !other.output.contains("Reused"))
    }

    // MARK: Helpers

    private func openssl(
        _ arguments: [String], _ server: SecureServer, input: String = "Q\n"
    ) async throws -> ChildProcess {
        let name = arguments.contains("-servername") ? [] : ["-servername", "one.test"]
        return try await ChildProcess.run(
            ["openssl", "s_client", "-connect", "127.0.0.1:\(server.port)", "-CAfile"]
                + [server.hosts.authority.certificateFile] + name + arguments, input: Array(input.utf8))
    }

    /// Runs a program with `raw`, a socket to the server, and `context`, which trusts it.
    /// - Parameter inMemory: with `tls` after the handshake, which writes to memory, and `rest(isOrderly)`: it ends our side,
    ///   with close_notify or without, and gives the bytes that then come, still encrypted. TLS 1.2, which sends no
    ///   tickets behind the handshake.
    private func python(_ program: String, _ server: SecureServer, inMemory: Bool = false) async throws -> String {
        let folder = try TemporaryDirectory()
        let start = """
            import socket, ssl, sys
            context = ssl.create_default_context(cafile=sys.argv[2])
            raw = socket.create_connection(('127.0.0.1', int(sys.argv[1])), timeout=20)

            """
        let memory = """
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
            tls = context.wrap_bio(incoming, outgoing, server_hostname='localhost')
            while True:
                try:
                    tls.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    incoming.write(raw.recv(65536))
            def rest(isOrderly):
                if isOrderly:
                    try: tls.unwrap()
                    except ssl.SSLWantReadError: pass
                got = b''
                # The server may have cut the connection by now.
                try:
                    raw.sendall(outgoing.read())
                    raw.shutdown(socket.SHUT_WR)
                    while piece := raw.recv(65536): got += piece
                except OSError: pass
                return got

            """
        let file = try folder.write(start + (inMemory ? memory : "") + program, to: "client.py")
        return try await ChildProcess.output(
            of: ["python3", file, "\(server.port)", server.hosts.authority.certificateFile])
    }
}
