import CLibssl
import Reactor
import TLSServer
import TestSupport
import Testing

@Suite("A TLS stream keeps the promises of a stream of bytes", .timeLimit(.minutes(3)))
struct StreamTests {
    private static let message = Array("hello, and some more".utf8)

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a TLS connection that is cut at any byte delivers the same bytes`(version: Int32) async throws {
        let hosts = try await Hosts.make()
        var (cut, length) = (0, 1)
        while cut < length {
            let (place, talk) = (cut, try await talk(hosts, version: version))
            try await talk.now { $0.cut = place }
            try await echo(Self.message, talk)
            length = try await talk.now { $0.delivered }
            cut += 1
        }
        #expect(length > 300)
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a TLS connection works byte by byte, in both directions`(version: Int32) async throws {
        let talk = try await talk(try await Hosts.make(), version: version, room: 1)
        try await talk.now { $0.most = 1 }
        try await echo(Self.message, talk)
    }

    @Test(arguments: [1, 100, 16384, 20000, 65536])
    func `a reader of TLS gets no more than its limit, and all bytes`(limit: Int) async throws {
        let talk = try await talk(try await Hosts.make(), limit: limit, room: 5000)
        let long = (0..<100_000).map { UInt8(truncatingIfNeeded: $0) }
        try await echo(long, talk)
        let largest = try await talk.now { $0.peer.largest }
        #expect(largest == min(limit, 65536) || limit == 65536 && largest > 16384)
    }

    @Test func `bytes that arrived before the TLS stream began are read first`() async throws {
        let hosts = try await Hosts.make()
        let talk = try await MemoryTalk { loop in
            let client = try MemoryClient()
            client.goOn()
            return try Conversation(client, on: loop, received: client.take(), contexts: hosts.context)
        }
        try await talk.turns(3)
        #expect(try await talk.now { !$0.carrier.written.isEmpty })
        try await echo(Self.message, talk)
    }

    @Test func `many small TLS records are read in turns, without another edge`() async throws {
        let talk = try await talk(try await Hosts.make())
        try await echo(Self.message, talk)
        let more = [UInt8](repeating: 65, count: 500)
        try await talk.now { talk in
            for byte in more { talk.client.write([byte]) }
            talk.deliver(talk.client.take())
        }
        #expect(try await talk.now { $0.peer.largest } < 500)
        try await talk.turns(20)
        #expect(try await talk.now { $0.peer.received } == Self.message + more)
    }

    @Test func `whichever call of the carrier fails, the reader is told`() async throws {
        let hosts = try await Hosts.make()
        var whole = 0
        for call in 1...40 {
            let talk = try await MemoryTalk { loop in
                try Conversation(
                    MemoryClient(), MemoryStream(failing: call, room: 700), on: loop, contexts: hosts.context)
            }
            try await talk.go("handshake \(call)") { $0.client.isDone || $0.peer.end != nil }
            try await talk.now { $0.client.write(Self.message) }
            try await talk.go("echo or end \(call)") {
                $0.client.received == Self.message || $0.peer.end != nil
            }
            if try await talk.now({ $0.peer.end == nil }) { whole += 1 }
            #expect(try await talk.now { $0.peer.end == nil || $0.carrier.isClosed })
        }
        #expect((1..<40).contains(whole))
    }

    @Test func `an end with close_notify is orderly, also right behind the last bytes`() async throws {
        let talk = try await talk(try await Hosts.make())
        try await echo(Self.message, talk)
        try await talk.now { talk in
            talk.client.write(Self.message)
            talk.client.end()
            talk.deliver(talk.client.take())
        }
        try await talk.go("the server's end") { $0.client.hasServerEnded }
        let (end, received, isClosed) = try await talk.now { ($0.peer.end, $0.client.received, $0.carrier.isClosed) }
        #expect(end == .endOfStream && received == Self.message + Self.message && isClosed)
    }

    @Test func `an end without close_notify is a failure`() async throws {
        let talk = try await talk(try await Hosts.make())
        try await echo(Self.message, talk)
        try await talk.now { $0.carrier.end() }
        try await talk.go("the end") { $0.peer.end != nil }
        #expect(try await talk.now { $0.peer.end } == .failed(SystemError("SSL_read", code: 104)))
    }

    @Test func `each side of a TLS connection may end alone`() async throws {
        let talk = try await talk(try await Hosts.make())
        try await echo(Self.message, talk)
        try await talk.now { talk in
            talk.peer.stays = true
            talk.client.end()
        }
        try await talk.go("the client's end") { $0.peer.end == .endOfStream }
        try await talk.now { $0.peer.write(Self.message) }
        try await talk.go("bytes behind it") { $0.client.received == Self.message + Self.message }

        let other = try await self.talk(try await Hosts.make())
        try await echo(Self.message, other)
        try await other.now { $0.stream.shutdownWriting() }
        try await other.go("our end") { $0.client.hasServerEnded && $0.carrier.isShutDown }
        try await other.now { $0.client.write(Self.message) }
        try await other.go("bytes behind it") { $0.peer.received == Self.message + Self.message }
    }

    @Test func `close sends the bytes that wait, close_notify last`() async throws {
        let talk = try await talk(try await Hosts.make(), room: 1000)
        try await echo(Self.message, talk)
        let long = [UInt8](repeating: 7, count: 20_000)
        let (waiting, isClosed) = try await talk.now { talk in
            talk.peer.write(long)
            let waiting = talk.stream.unacknowledged
            talk.stream.close()
            return (waiting, talk.carrier.isClosed)
        }
        #expect(waiting > 15_000 && !isClosed)
        try await talk.go("the end") { $0.carrier.isClosed }
        try await talk.now { $0.step() }
        let (received, hasEnded, isCut) = try await talk.now {
            ($0.client.received.count, $0.client.hasServerEnded, $0.carrier.isCut)
        }
        #expect(received > Self.message.count + 16_000 && hasEnded && !isCut)
    }

    @Test func `a cut of a TLS stream is a reset, without close_notify`() async throws {
        let talk = try await talk(try await Hosts.make())
        try await echo(Self.message, talk)
        try await talk.now { talk in
            talk.stream.resetOnClose()
            talk.stream.close()
            talk.step()
        }
        #expect(try await talk.now { $0.carrier.isCut && $0.carrier.isClosed && !$0.client.hasServerEnded })
    }

    @Test func `some key updates pass, a flood of them ends the connection`() async throws {
        let talk = try await talk(try await Hosts.make())
        try await echo(Self.message, talk)
        try await talk.now { talk in
            for _ in 0..<20 { talk.client.updateKey() }
            talk.client.write(Self.message)
        }
        try await talk.go("the echo") { $0.client.received == Self.message + Self.message }
        try await talk.now { talk in for _ in 0..<1000 { talk.client.updateKey() } }
        try await talk.go("the end") { $0.peer.end != nil }
        #expect(try await talk.now { $0.peer.end } == .failed(SystemError("SSL_read", code: 71)))
    }

    @Test func `a TLS renegotiation is refused`() async throws {
        let talk = try await talk(try await Hosts.make(), version: TLS1_2_VERSION)
        try await echo(Self.message, talk)
        try await talk.now { talk in
            talk.client.renegotiate()
            talk.deliver(talk.client.take())
        }
        #expect(try await talk.now { $0.peer.end } == .failed(SystemError("SSL_read", code: 71)))
    }

    @Test func `a TLS stream works inside another TLS stream`() async throws {
        let hosts = try await Hosts.make()
        let outer = try await talk(hosts)
        try await outer.go("the outer handshake") { $0.client.isDone }
        let inner = try await outer.loop.run { [loop = outer.loop] in
            LoopBound(try MemoryClient(name: "two.test"), on: loop)
        }
        let peer = try await outer.now { talk in
            let stream = try TLSServerStream(
                on: talk.stream, server: TLSServerLoop(on: outer.loop), choose: { ContextChoice(hosts.context($0)) })
            let peer = EchoPeer(stream, limit: 65536)
            try stream.register(peer)
            return LoopBound(peer, on: outer.loop)
        }
        var (isSent, steps) = (false, 0)
        while try await outer.loop.run({ inner.value.received }) != Self.message {
            steps += 1
            try #require(steps < 1000)
            let wasSent = isSent
            isSent = try await outer.now { talk in
                let isSent = inner.value.isDone
                if isSent, !wasSent { inner.value.write(Self.message) }
                inner.value.goOn()
                let bytes = inner.value.take()
                if !bytes.isEmpty { talk.client.write(bytes) }
                let before = talk.client.received.count
                talk.step()
                inner.value.deliver(Array(talk.client.received[before...]))
                return isSent
            }
        }
        #expect(try await outer.loop.run { peer.value.received } == Self.message)
    }

    @Test func `a closed TLS stream is freed, whatever it was doing`() async throws {
        let hosts = try await Hosts.make()
        for stage in 0..<4 {
            let loop = try EventLoop.start(name: "freed")
            let talk = try await loop.run {
                LoopBound(
                    Kept(
                        try Conversation(
                            MemoryClient(), MemoryStream(room: 1000), on: loop, patience: .milliseconds(500),
                            contexts: hosts.context)), on: loop)
            }
            try await eventually("stage \(stage)") {
                try await loop.run {
                    guard let conversation = talk.value.conversation else { return true }
                    if stage == 1 || stage == 2 { conversation.step() }
                    guard stage == 0 || stage == 3 || conversation.client.isDone else { return false }
                    if stage == 2 { conversation.peer.write([UInt8](repeating: 1, count: 20_000)) }
                    // The handshake of stage 3 times out.
                    if stage == 3 { return conversation.carrier.isClosed }
                    conversation.stream.close()
                    talk.value.conversation = nil
                    return false
                }
            }
            try await loop.run { talk.value.conversation = nil }
            try await eventually("the end of stage \(stage)") { try await loop.run { talk.value.stream == nil } }
            loop.stop()
        }
    }

    /// A conversation to let go of, and what should go with it.
    private final class Kept {
        var conversation: Conversation?
        weak var stream: TLSServerStream?
        init(_ conversation: Conversation) {
            self.conversation = conversation
            stream = conversation.stream
        }
    }

    // MARK: Helpers

    private func talk(
        _ hosts: Hosts, version: Int32? = nil, limit: Int = 65536, room: Int = .max
    ) async throws -> MemoryTalk {
        try await MemoryTalk { loop in
            try Conversation(
                MemoryClient(version: version), MemoryStream(room: room), on: loop, limit: limit,
                contexts: hosts.context)
        }
    }

    private func echo(_ bytes: [UInt8], _ talk: MemoryTalk) async throws {
        try await talk.go("the handshake") { $0.client.isDone }
        try await talk.now { $0.client.write(bytes) }
        try await talk.go("the echo of \(bytes.count) bytes") { $0.client.received == bytes }
    }
}
