import CurlTransport
import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("a carrier over TLS is checked, knows its end, and lets tickets be", .timeLimit(.minutes(1)))
struct CarrierTLSTests {
    @Test func `one connection over TLS serves its users one after the other`() async throws {
        let nginx = try await Nginx.secure()
        let carriers = try await CarrierPoolOnLoop(nginx.trust)
        for number in 0..<10 {
            let user = try await carriers.exchange(nginx.origin)
            #expect(user.record.isReused == (number > 0))
            #expect(user.record.text.contains("protocol: HTTP/1.1\n"))
        }
        #expect(try await carriers.counts == .init(open: 1, idle: 1))
    }

    @Test func `certificates of an unknown authority, and for another name, are refused`() async throws {
        let nginx = try await Nginx.secure(["DNS:other.test"])
        let trusting = try await CarrierPoolOnLoop(nginx.trust)
        let stranger = try await CarrierPoolOnLoop()
        #expect(try await stranger.failure(nginx.origin).kind == .tlsCertificate)
        #expect(try await trusting.failure(nginx.origin).kind == .tlsCertificate)
        let port = nginx.httpsPort
        let named = Origin.secure(port, host: "127.0.0.1", serverName: "other.test")
        #expect(try await trusting.exchange(named).record.text.contains("server-name: other.test\n"))
        let wrong = Origin.secure(port, host: "127.0.0.1", serverName: "third.test")
        #expect(try await trusting.failure(wrong).kind == .tlsCertificate)
        let missing = try await CarrierPoolOnLoop { $0.trustAnchors = .only(file: "/does/not/exist") }
        #expect(try await missing.failure(nginx.origin).kind == .tlsConfiguration)
    }

    @Test func `a carrier uses no TLS connection that was made for another name`() async throws {
        let nginx = try await Nginx.secure(["DNS:one.test", "DNS:two.test"])
        let carriers = try await CarrierPoolOnLoop(nginx.trust)
        for name in ["one.test", "two.test", "one.test"] {
            let origin = Origin.secure(nginx.httpsPort, host: "127.0.0.1", serverName: name)
            #expect(try await carriers.exchange(origin).record.text.contains("server-name: \(name)\n"))
        }
        #expect(try await carriers.counts == .init(open: 2, idle: 2))
    }

    @Test func `a carrier shows its client certificate where it is asked for`() async throws {
        let nginx = try await Nginx.secure(asksClients: true)
        let file = nginx.authority.certificateFile
        let certificate = try await nginx.authority.client("billing")
        let with = try await CarrierPoolOnLoop {
            $0.trustAnchors = .only(file: file)
            $0.certificateFile = certificate.certificateFile
            $0.keyFile = certificate.keyFile
        }
        #expect(try await with.exchange(nginx.origin).record.text.contains("client-certificate: CN=billing\n"))
        let without = try await CarrierPoolOnLoop(nginx.trust)
        let text = try? await without.exchange(nginx.origin).record.text
        #expect(text == nil || text?.contains(" 400 ") == true)
        let mismatched = try await CarrierPoolOnLoop {
            $0.trustAnchors = .only(file: file)
            $0.certificateFile = certificate.certificateFile
            $0.keyFile = certificate.certificateFile
        }
        #expect(try await mismatched.failure(nginx.origin).kind == .tlsConfiguration)
    }

    /// nginx says close_notify when it leaves by itself.
    @Test func `an idle TLS connection that the server ends is dropped at once`() async throws {
        let nginx = try await Nginx.secure(locations: Nginx.sayWhatArrived + "\nkeepalive_timeout 100ms;")
        let carriers = try await CarrierPoolOnLoop(nginx.trust)
        _ = try await carriers.exchange(nginx.origin)
        try await carriers.settles(at: .init())
    }

    /// Answers once. At SIGUSR1 it sends another answer, or the front of its record.
    private static let unaskedServer = #"""
        import fcntl, signal, socket, ssl, struct, sys, termios, time
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[1], sys.argv[2])
        listener = socket.create_server(("127.0.0.1", 0))
        print(listener.getsockname()[1], flush=True)
        raw, _ = listener.accept()
        # Nagle's algorithm would hold the second answer until the first one is acknowledged.
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        tls = context.wrap_bio(incoming, outgoing, server_side=True)
        def until_done(call):
            while True:
                try:
                    return call()
                except ssl.SSLWantReadError:
                    raw.sendall(outgoing.read())
                    incoming.write(raw.recv(65536))
        until_done(tls.do_handshake)
        until_done(lambda: tls.read(65536))
        tls.write(b"HTTP/1.1 204 Done\r\n\r\n")
        raw.sendall(outgoing.read())
        signal.sigwait([signal.SIGUSR1])
        tls.write(b"HTTP/1.1 200 OK\r\n\r\n")
        record = outgoing.read()
        raw.sendall({"whole": record, "part": record[:10], "nothing": b""}[sys.argv[3]])
        # 0 bytes are unacknowledged: the other side's kernel has them (tcp(7), SIOCOUTQ).
        while struct.unpack("i", fcntl.ioctl(raw, termios.TIOCOUTQ, bytes(4)))[0]:
            time.sleep(0.001)
        print("arrived", flush=True)
        raw.recv(1)
        """#

    @Test(arguments: ["whole", "part", "nothing"])
    func `TLS bytes that came while the loop was busy show before a request is written`(what: String) async throws {
        let server = try await TLSServerProcess(["/usr/bin/python3", "-c", Self.unaskedServer], [what])
        let file = server.authority.certificateFile
        let carriers = try await CarrierPoolOnLoop { $0.trustAnchors = .only(file: file) }
        _ = try await carriers.exchange(.secure(server.port))
        let (isHeld, arrived) = (Gate(), Gate())
        async let untouched = carriers.takesUntouched(.secure(server.port), isHeld: isHeld, goesOn: arrived)
        try await offPool { isHeld.wait() }
        server.process.signal(SIGUSR1)
        let came: Void? = try? await eventually("it has arrived") { server.output.contains("arrived") }
        arrived.open()
        #expect(came != nil)
        #expect(try await untouched == (what == "nothing"))
        try await server.process.stop()
    }

    @Test func `close_notify is told from the end of TCP`() async throws {
        let nginx = try await Nginx.secure()
        let cut = Gate()
        let relay = try Relay(to: nginx.httpsPort, cutsWhen: cut)
        let carriers = try await CarrierPoolOnLoop(nginx.trust)
        let whole = try await carriers.connected(nginx.origin)
        try await whole.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        #expect(try await whole.ended().isEndClean == true)
        let broken = try await carriers.connected(.secure(relay.port))
        try await broken.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        _ = try await broken.answer()
        cut.open()
        #expect(try await broken.ended().isEndClean != true)
        try await whole.release()
        try await broken.release()
        #expect(try await carriers.counts == .init())
    }

    @Test func `a ticket that comes to an idle connection does not end it`() async throws {
        let nginx = try await Nginx.secure(locations: Nginx.sayWhatArrived + "\nssl_protocols TLSv1.3;")
        let gate = Gate()
        let relay = try Relay(to: nginx.httpsPort, holdsTicketsUntil: gate)
        let carriers = try await CarrierPoolOnLoop(nginx.trust)
        let user = try await carriers.connect(.secure(relay.port), releasesAtOnce: true)
        try await user.arrived()
        #expect(try await carriers.counts == .init(open: 1, idle: 1))
        gate.open()
        try await eventually("the tickets have passed") { relay.passed > 0 }
        try await eventually("the loop has seen them") { try unreadBytes(from: relay.port) == 0 }
        #expect(try await carriers.counts == .init(open: 1, idle: 1))
        #expect(try await carriers.exchange(.secure(relay.port)).record.isReused)
    }

    /// libcurl takes no tickets before TLS 1.3; the server has to remember.
    @Test(arguments: ["ssl_protocols TLSv1.3;", "ssl_protocols TLSv1.2; ssl_session_cache shared:carriers:1m;"])
    func `a TLS session is resumed by the next connection`(protocols: String) async throws {
        let nginx = try await Nginx.secure(
            locations: """
                \(protocols)
                location / { default_type text/plain; return 200 "resumed: $ssl_session_reused\\n"; }
                """)
        let carriers = try await CarrierPoolOnLoop(nginx.trust)
        #expect(try await carriers.exchange(nginx.origin).record.text.contains("resumed: .\n"))
        #expect(try await carriers.exchange(nginx.origin, newConnection: true).record.text.contains("resumed: r\n"))
    }

    @Test func `megabytes pass both ways over TLS through a buffer that moves`() async throws {
        let nginx = try await Nginx.secure(locations: "client_max_body_size 64m; location / { return 200; }")
        let carriers = try await CarrierPoolOnLoop(nginx.trust)
        let user = try await carriers.connected(nginx.origin)
        let length = 24 << 20
        try await user.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: \(length)\r\n\r\n")
        // Piece by piece: what waits in the buffer grows, and is offered again from another address.
        for _ in 0..<24 { try await user.send([UInt8](repeating: 7, count: 1 << 20)) }
        try await eventually("all of it is sent") { user.record.sent > length }
        #expect(try await user.answer().hasPrefix("HTTP/1.1 200 "))
        #expect(user.record.broken == nil)
        try await user.release()
    }
}

/// Passes connections on to a port, and can be told to cut them, or to hold back what the server says once its
/// handshake is over.
private final class Relay: Sendable {
    private struct State {
        var isFinished = false
        var passed = 0
    }
    private final class Progress: Sendable { let state = Mutex(State()) }

    private let listener: Listener
    private let progress: Progress
    var port: UInt16 { listener.port }
    /// How many pieces were held and then passed.
    var passed: Int { progress.state.withLock { $0.passed } }

    init(to port: UInt16, cutsWhen cut: Gate? = nil, holdsTicketsUntil gate: Gate? = nil) throws {
        let progress = Progress()
        self.progress = progress
        listener = try Listener { peer in
            guard let other = Peer.connect(port: port) else { return }
            if let cut {
                Thread.detachNewThread {
                    cut.wait()
                    peer.close()
                    other.close()
                }
            }
            Thread.detachNewThread {
                // ClientHello; then the client's Finished.
                other.write(peer.read())
                let last = peer.read()
                progress.state.withLock { $0.isFinished = true }
                other.write(last)
                peer.relay(to: other)
            }
            guard let gate else { return other.relay(to: peer) }
            while true {
                let piece = other.read()
                if piece.isEmpty { return peer.close() }
                let isHeld = progress.state.withLock { $0.isFinished }
                if isHeld { gate.wait() }
                peer.write(piece)
                if isHeld { progress.state.withLock { $0.passed += 1 } }
            }
        }
    }
}
