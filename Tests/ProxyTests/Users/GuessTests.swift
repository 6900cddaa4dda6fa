import Foundation
import HTTP2
import Heimdallr
import Reactor
import TestSupport
import Testing

@testable import Proxy

@Suite("guesses at passwords of proxy.users", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct GuessTests {
    private static let users = "users: {alice: right-a, bob: right-b}"

    private func basic(_ credentials: String) -> String { "Basic \(Data(credentials.utf8).base64EncodedString())" }

    private func field(_ credentials: String) -> String { "Proxy-Authorization: \(basic(credentials))" }

    private func head(_ credentials: String) -> String {
        "GET http://api.test/ HTTP/1.1\r\nHost: api.test\r\n\(field(credentials))\r\n\r\n"
    }

    /// An HTTP/2 connection's first bytes, with a request for each of the credentials.
    private func streams(_ credentials: [String]) throws -> (session: HTTP2Session, bytes: [UInt8]) {
        let session = try HTTP2Session(.client, spares: SpareBuffers(), at: .current())
        for one in credentials {
            var list = HTTP2FieldList()
            for (name, value) in [
                (":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "api.test"),
                ("proxy-authorization", basic(one)),
            ] {
                list.append(Array(name.utf8).span, Array(value.utf8).span)
            }
            _ = try session.request(list, hasBody: false)
        }
        var output = ByteBuffer()
        try session.fill(&output, limit: 1 << 20)
        return (session, [UInt8](copying: output.bytes))
    }

    /// Number of answers in these bytes of the proxy, and the code of its GOAWAY.
    private static func seen(by session: HTTP2Session, in bytes: [UInt8]) throws -> (heads: Int, code: HTTP2Code?) {
        try session.receive(bytes.span, at: .current())
        var heads = 0
        var code: HTTP2Code?
        while let event = session.next() {
            if case .head = event { heads += 1 }
            if case .goAway(_, let given) = event { code = given }
        }
        return (heads, code)
    }

    private static let flood = (0..<(FailedLoginLimit.rate)).map { "alice:guess-\($0)" }

    @Test func `one wrong password too many ends the connection of HTTP 2, and none behind it is compared`()
        async throws
    {
        let proxy = try await ProxyInProcess(proxy: Self.users)
        let (session, bytes) = try streams(Self.flood + ["alice:one more", "alice:right-a"])
        let client = try await proxy.connect()
        try await client.send(bytes)
        let answer = try await client.readToEnd()
        let seen = try Self.seen(by: session, in: answer)
        #expect(seen.code == .enhanceYourCalm)
        // The others would have waited.
        #expect(seen.heads <= FailedLoginLimit.patience)
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test(arguments: [false, true])
    func `behind a flood, a right password gets in if it did so before from there, in each version`(
        isKnown: Bool
    ) async throws {
        let proxy = try await ProxyInProcess(upstream: "listen: 127.0.0.1:0", proxy: Self.users)
        if isKnown { #expect(try await proxy.request(fields: [field("bob:right-b")]).status == 200) }
        // All that follows comes within a turn or two.
        let gate = Gate()
        await proxy.holdLoop(until: gate)
        var guessers: [RawClient] = []
        for guess in Self.flood.dropLast(20) {
            let client = try await proxy.connect(sending: head(guess))
            try await client.isDelivered()
            guessers.append(client)
        }
        let many = try await proxy.connect()
        try await many.send(try streams(Array(Self.flood.suffix(20))).bytes)
        try await many.isDelivered()
        let bob = try await proxy.connect(sending: head("bob:right-b"))
        try await bob.isDelivered()
        let inside = try await proxy.connect(
            sending: "CONNECT api.test:80 HTTP/1.1\r\nHost: api.test\r\n\(field("bob:right-b"))\r\n\r\n")
        try await inside.isDelivered()
        let own = try await RawClient.connect(
            port: proxy.upstreamPort, sending: "GET / HTTP/1.1\r\nHost: localhost\r\n\(field("bob:right-b"))\r\n\r\n")
        let (session, bytes) = try streams(["bob:right-b"])
        let second = try await proxy.connect()
        try await second.send(bytes)
        try await second.isDelivered()
        gate.open()
        if isKnown {
            for client in [bob, own] { #expect(try await client.response().status == 200) }
            #expect(try await inside.response(to: "CONNECT").status == 200)
            try await eventually("the request over HTTP/2") { proxy.origin.requests.count == 4 }
        } else {
            for client in [bob, inside, own] { #expect(try await client.readToEnd().isEmpty) }
            #expect(try Self.seen(by: session, in: try await second.readToEnd()).heads == 0)
            #expect(proxy.origin.requests.isEmpty)
            // The flood is over.
            try await eventually("the right password counts again") {
                (try? await proxy.request(fields: [field("bob:right-b")]))?.status == 200
            }
        }
        withExtendedLifetime((guessers, many)) {}
    }

    @Test func `a client that leaves before the answer gets no more guesses for it`() {
        var limit = FailedLoginLimit()
        let now = ContinuousClock.now
        for _ in 0..<FailedLoginLimit.rate {
            #expect(!limit.isFlooding("a", now: now))
            _ = limit.failed("a", now: now)
        }
        #expect(limit.isFlooding("a", now: now) && !limit.isFlooding("b", now: now))
        #expect(limit.isFlooding("a", now: now + .milliseconds(999)))
        #expect(!limit.isFlooding("a", now: now + .seconds(1)))
        #expect(limit.isExhausted("a", now: now + .seconds(59)))
    }

    @Test func `users who were right are known for an hour, by their source, and not without end`() {
        var right = RightLogins()
        let now = LoopTime.current()
        right.note("alice", from: "a", at: now)
        #expect(right.has("alice", from: "a", at: now + .seconds(3599)))
        #expect(!right.has("alice", from: "a", at: now + .seconds(3600)))
        #expect(!right.has("alice", from: "b", at: now) && !right.has("bob", from: "a", at: now))
        for number in 0..<3000 { right.note("user \(number)", from: "a", at: now + .milliseconds(number + 1)) }
        #expect(right.has("user 2999", from: "a", at: now + .seconds(4)))
        #expect(!right.has("alice", from: "a", at: now + .seconds(4)))
        #expect((0..<3000).count { right.has("user \($0)", from: "a", at: now + .seconds(4)) } <= 1024)
    }
}
