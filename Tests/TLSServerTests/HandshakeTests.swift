import CLibssl
import Reactor
@testable import TLSServer
import TestSupport
import Testing

@Suite("A handshake ends as both sides want, and the owner hears how", .timeLimit(.minutes(2)))
struct HandshakeTests {
    @Test func `the server name chooses the certificate`() async throws {
        let hosts = try await Hosts.make()
        #expect(try await certificate(for: "one.test") == hosts.oneCertificate)
        #expect(try await certificate(for: nil) == hosts.oneCertificate)
        #expect(try await certificate(for: "ONE.test") == hosts.oneCertificate)
        let other = try await certificate(for: "two.test")
        #expect(!other.isEmpty && other != hosts.oneCertificate)
    }

    @Test func `a name that is not served gets unrecognized_name`() async throws {
        let end = try await end(of: MemoryClient(name: "three.test"))
        #expect(end == .refused(TLSAlert(number: 112)))
        #expect(TLSAlert(number: 112).description == "unrecognized_name")
    }

    @Test func `a server name is one ASCII host name`() {
        func name(_ bytes: [UInt8]) -> String? { ServerName.parse(MessageReader(bytes)) }
        #expect(name([0, 6, 0, 0, 3] + Array("A.b".utf8)) == "a.b")
        #expect(name([]) == nil && name([0, 3, 0, 0, 0]) == nil && name([0, 6, 0, 0, 3]) == nil)
        #expect(name([0, 7, 0, 0, 3] + Array("a.b".utf8)) == nil && name([0, 6, 0, 0, 4] + Array("a.b".utf8)) == nil)
        #expect(name([0, 6, 1, 0, 3] + Array("a.b".utf8)) == nil && name([0, 6, 0, 0, 2] + Array("a.b".utf8)) == nil)
        #expect(name([0, 6, 0, 0, 3] + Array("a\0b".utf8)) == nil && name([0, 6, 0, 0, 3] + Array("a b".utf8)) == nil)
        let long = [UInt8](repeating: 97, count: 256)
        #expect(name([1, 3, 0, 1, 0] + long) == nil && name([1, 2, 0, 0, 255] + long.dropLast()) != nil)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `http/1.1 is chosen where it is offered, else h2, and nothing else`(version: Int32) async throws {
        let name = version == TLS1_2_VERSION ? "TLSv1.2" : "TLSv1.3"
        func done(_ chosen: String?) -> HandshakeEnd {
            .done(version: name, applicationProtocol: chosen, serverName: "one.test")
        }
        #expect(try await end(of: MemoryClient(protocols: ["h2", "http/1.1"], version: version)) == done("http/1.1"))
        #expect(try await end(of: MemoryClient(protocols: ["http/1.1", "h2"], version: version)) == done("http/1.1"))
        #expect(try await end(of: MemoryClient(protocols: [], version: version)) == done(nil))
        #expect(try await end(of: MemoryClient(protocols: ["h2", "x"], version: version)) == done("h2"))
        let refused = try await end(of: MemoryClient(protocols: ["h3"], version: version))
        #expect(refused == .refused(TLSAlert(number: 120)))
        #expect(TLSAlert(number: 120).description == "no_application_protocol")
    }

    @Test func `TLS 1.1 is refused in the handshake`() async throws {
        let end = try await end(of: MemoryClient(version: TLS1_1_VERSION))
        #expect(end == .refused(TLSAlert(number: 70)))
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a client that does not trust the certificate says so`(version: Int32) async throws {
        let end = try await end(of: MemoryClient(version: version, trusts: false))
        #expect(end == .alert(TLSAlert(number: 48)))
        #expect(TLSAlert(number: 48).description == "unknown_ca")
        #expect(TLSAlert(number: 42).description == "bad_certificate")
        #expect(TLSAlert(number: 46).description == "certificate_unknown")
        #expect(TLSAlert(number: 250).description == "alert_250")
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a session is resumed for its host only, and takes no early data`(version: Int32) async throws {
        let session = try await session(version: version)
        let again = try await talk(MemoryClient(version: version, session: session))
        try await again.go("handshake") { $0.client.isDone }
        #expect(try await again.now { $0.client.isResumed && $0.client.earlyData == 0 })
        let other = try await talk(MemoryClient(name: "two.test", version: version, session: session))
        try await other.go("handshake") { $0.client.isDone || $0.client.hasFailed }
        #expect(try await other.now { !$0.client.isResumed })
    }

    @Test func `early data is refused, and none of it is read`() async throws {
        let session = try await session(version: TLS1_3_VERSION)
        session.permitEarlyData()
        let talk = try await talk(MemoryClient(session: session, early: Array("GET / HTTP/1.1\r\n".utf8)))
        try await talk.go("the handshake") { $0.client.isDone }
        try await talk.now { $0.client.write([7]) }
        try await talk.go("the echo") { $0.client.received == [7] }
        #expect(try await talk.now { $0.client.isEarlyDataRefused && $0.client.isResumed && $0.peer.received == [7] })
    }

    @Test func `an end or a reset within the handshake is told`() async throws {
        #expect(try await end(of: MemoryClient(), after: { $0.carrier.end() }) == .ended)
        let reset = try await MemoryTalk { loop in
            let hosts = Self.nobody
            return try Conversation(MemoryClient(), MemoryStream(failing: 1), on: loop, contexts: hosts)
        }
        try await reset.go("the end") { !$0.ends.isEmpty }
        #expect(try await reset.now { $0.ends } == [.reset])
        let closed = try await end(
            of: MemoryClient(),
            after: { talk in
                talk.deliver(talk.client.take())
                // close_notify, before any key.
                talk.carrier.deliver([21, 3, 3, 0, 2, 1, 0])
            })
        #expect(closed == .ended)
        let plain = try await MemoryTalk { try Conversation(MemoryClient(), on: $0, contexts: Self.nobody) }
        try await plain.now { $0.deliver(Array("GET / HTTP/1.1\r\n\r\n".utf8)) }
        try await plain.go("the end") { !$0.ends.isEmpty }
        #expect(try await plain.now { $0.ends } == [.refused(nil)])
    }

    @Test func `an end that was announced before is seen`() async throws {
        let hosts = try await Hosts.make()
        let talk = try await MemoryTalk { loop in
            let client = try MemoryClient()
            client.goOn()
            let carrier = MemoryStream()
            carrier.deliver(client.take())
            carrier.end()
            return try Conversation(client, carrier, on: loop, isEnding: true, contexts: hosts.context)
        }
        try await talk.go("the end") { !$0.ends.isEmpty }
        #expect(try await talk.now { $0.ends } == [.ended])
    }

    @Test func `a client that leaves before its first byte is told, another one is not`() async throws {
        for (speaks, closes) in [(false, true), (false, false), (true, true)] {
            let talk = try await talk(MemoryClient())
            try await talk.go("handshake") { $0.client.isDone && $0.ends.count == 1 }
            try await talk.now { talk in
                if speaks { talk.client.write([1]) }
                if closes { talk.client.end() }
                talk.step()
                talk.carrier.end()
            }
            try await talk.go("the end") { $0.peer.end != nil }
            #expect(try await talk.now { $0.ends.dropFirst() } == (speaks ? [] : [.silent]))
        }
    }

    @Test func `a ClientHello may come in several records`() async throws {
        let talk = try await talk(MemoryClient())
        try await talk.now { talk in
            let hello = talk.client.take()
            for piece in [hello[5..<9], hello[9..<100], hello[100...]] {
                talk.carrier.deliver(hello[..<3] + [UInt8(piece.count >> 8), UInt8(piece.count & 255)] + piece)
            }
        }
        try await talk.go("the handshake") { $0.client.isDone && !$0.ends.isEmpty }
        guard case .done = try await talk.now({ $0.ends[0] }) else {
            Issue.record("not done")
            return
        }
    }

    @Test func `a slow handshake is given up`() async throws {
        let hosts = try await Hosts.make()
        let talk = try await MemoryTalk { loop in
            try Conversation(MemoryClient(), on: loop, patience: .milliseconds(20), contexts: hosts.context)
        }
        try await eventually("the end") { try await talk.now { $0.carrier.isClosed } }
        let (ends, end) = try await talk.now { ($0.ends, $0.peer.end) }
        #expect(ends == [.abandoned] && end == .failed(SystemError("SSL_accept", code: 110)))
    }

    @Test(arguments: [true, false])
    func `a handshake waits for a context that is made on another thread`(isMade: Bool) async throws {
        let hosts = try await Hosts.make()
        let decisions = Recorder<LateDecision>()
        let talk = try await MemoryTalk { loop in
            try Conversation(
                MemoryClient(), on: loop,
                choose: { _ in .later { decisions.append($0) } })
        }
        for _ in 0..<10 { try await talk.now { $0.step() } }
        #expect(try await talk.now { $0.ends.isEmpty && !$0.client.isDone })
        let late = try #require(decisions.all.first)
        let context = isMade ? hosts.context("one.test") : nil
        await Task.detached { late.decide(context) }.value
        try await talk.go("the end of the handshake") { !$0.ends.isEmpty }
        let end = try await talk.now { $0.ends[0] }
        if case .done = end { #expect(isMade) } else { #expect(!isMade && end == .refused(.internalError)) }
        // A second one changes nothing.
        late.decide(nil)
        if isMade { try await talk.go("the client's end") { $0.client.isDone } }
    }

    @Test func `a decision for a client that has left harms nobody`() async throws {
        let hosts = try await Hosts.make()
        let decisions = Recorder<LateDecision>()
        let talk = try await MemoryTalk { loop in
            try Conversation(
                MemoryClient(), on: loop, patience: .milliseconds(20),
                choose: { _ in .later { decisions.append($0) } })
        }
        try await talk.now { $0.step() }
        try await eventually("the end") { try await talk.now { $0.carrier.isClosed } }
        #expect(try await talk.now { $0.ends } == [.abandoned])
        try #require(decisions.all.first).decide(hosts.context("one.test"))
        #expect(try await talk.now { $0.ends } == [.abandoned])
    }

    @Test func `a broken ClientHello ends the handshake or waits, and harms nobody`() async throws {
        let hosts = try await Hosts.make()
        let hello = try await talk(MemoryClient()).now { $0.client.take() }
        var random = Steady(state: 26)
        var refused = 0
        for _ in 0..<2000 {
            var broken = hello
            for _ in 0...(random.next() % 3) {
                broken[Int(random.next() % UInt64(broken.count))] = UInt8(truncatingIfNeeded: random.next() >> 9)
            }
            let bytes = broken
            let talk = try await MemoryTalk { try Conversation(MemoryClient(), on: $0, contexts: hosts.context) }
            try await talk.now { talk in
                talk.deliver(bytes)
                talk.carrier.end()
            }
            try await talk.go("the end") { $0.peer.end != nil }
            let ends = try await talk.now { $0.ends }
            #expect(ends.count == 1)
            if case .refused = ends.first { refused += 1 }
        }
        #expect(refused > 100)
    }

    @Test func `a certificate needs its own key`() async throws {
        let authority = try await PrivateCA()
        let (one, two) = (try await authority.server(), try await authority.server())
        #expect(throws: (any Error).self) {
            try TLSServerContext(
                certificates: [try Hosts.der(one.certificateFile)], key: try Hosts.key(two.keyFile), session: [])
        }
        #expect(throws: (any Error).self) {
            try TLSServerContext(certificates: [[1, 2, 3]], key: try Hosts.key(two.keyFile), session: [])
        }
    }

    // MARK: Helpers

    private static func nobody(_ name: String?) -> TLSServerContext? { nil }

    /// Repeats with its seed.
    private struct Steady: RandomNumberGenerator {
        var state: UInt64
        mutating func next() -> UInt64 {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return state ^ state >> 31
        }
    }

    private func talk(_ make: @autoclosure @escaping @Sendable () throws -> MemoryClient) async throws -> MemoryTalk {
        let hosts = try await Hosts.make()
        return try await MemoryTalk { try Conversation(make(), on: $0, contexts: hosts.context) }
    }

    private func end(
        of client: @autoclosure @escaping @Sendable () throws -> MemoryClient,
        after: @escaping @Sendable (Conversation) -> Void = { _ in }
    ) async throws -> HandshakeEnd? {
        let talk = try await talk(client())
        try await talk.now(after)
        try await talk.go("the end of the handshake") { !$0.ends.isEmpty }
        return try await talk.now { $0.ends.first }
    }

    private func certificate(for name: String?) async throws -> [UInt8] {
        let talk = try await talk(MemoryClient(name: name))
        try await talk.go("the handshake") { $0.client.isDone }
        return try await talk.now { $0.client.certificate }
    }

    /// A session of `one.test`.
    private func session(version: Int32) async throws -> MemorySession {
        let talk = try await talk(MemoryClient(version: version))
        try await talk.go("the handshake") { $0.client.isDone }
        // Tickets of TLS 1.3 come behind it.
        try await talk.now { talk in for _ in 0..<3 { talk.step() } }
        return try await talk.now { talk in
            // libssl forgets the session of a connection that did not end in order.
            talk.client.end()
            return try #require(talk.client.session)
        }
    }
}
