import Foundation
@testable import Reactor
import Synchronization
import TestSupport
import Testing

@Suite("names are looked up off the loop", .timeLimit(.minutes(1)))
struct NameResolverTests {
    private static let nine = NumericAddress(ipv4: 0x0909_0909)

    /// A loop that looks up names, and the answers.
    private final class Asker: Sendable {
        let loop: EventLoop
        private let state = Mutex<[NameAnswer]>([])
        private let questions = Mutex<[LoopBound<NameQuestion>]>([])
        var answers: [NameAnswer] { state.withLock { $0 } }

        init() throws { loop = try EventLoop.start(name: "asker") }
        deinit { loop.stop() }

        func ask(_ name: String, _ resolver: NameResolver) async throws {
            try await loop.run { [self] in
                let question = resolver.ask(name, on: loop) { answer in
                    self.loop.preconditionOnLoop()
                    self.state.withLock { $0.append(answer) }
                }
                guard let question else { return }
                let bound = LoopBound(question, on: loop)
                questions.withLock { $0.append(bound) }
            }
        }

        func abandonAll() async throws {
            try await loop.run { [self] in
                for question in questions.withLock({ $0 }) { question.value.abandon() }
            }
        }
    }

    /// A look-up that the test lets go on.
    private final class Server: Sendable {
        private let gate = Gate()
        private let names = Recorder<String>()
        var asked: [String] { names.all }
        func open() { gate.open() }

        func lookUp(_ name: String) -> NameAnswer {
            names.append(name)
            gate.wait()
            return .success([nine])
        }
    }

    @Test func `loops share a look-up, each is told on its own thread, and whoever leaves costs nothing`() async throws
    {
        let server = Server()
        let resolver = NameResolver(lookUp: server.lookUp)
        let (first, second, third) = (try Asker(), try Asker(), try Asker())
        for asker in [first, second, third] { try await asker.ask("Slow.test", resolver) }
        try await eventually("the look-up") { !server.asked.isEmpty }
        let start = ContinuousClock.now
        try await third.abandonAll()
        #expect(ContinuousClock.now - start < .seconds(1))
        server.open()
        try await eventually("both are told") { first.answers.count == 1 && second.answers.count == 1 }
        #expect(first.answers == [.success([Self.nine])])
        #expect(server.asked == ["slow.test"])
        // Kept: known at once.
        try await first.ask("slow.test", resolver)
        #expect(first.answers.count == 2)
        #expect(third.answers.isEmpty)
    }

    @Test func `look-ups that hang leave the loop alone, however many there are`() async throws {
        let server = Server()
        let resolver = NameResolver(lookUp: server.lookUp)
        let asker = try Asker()
        for number in 0..<400 { try await asker.ask("\(number).zone\(number % 100).test", resolver) }
        let start = ContinuousClock.now
        try await asker.loop.run {}
        #expect(ContinuousClock.now - start < .seconds(1))
        try await eventually("128 at once") { server.asked.count == 128 }
        // 256 wait; the others have been told that there are too many.
        #expect(asker.answers.count == 400 - 128 - 256)
        server.open()
        try await eventually("everybody is told") { asker.answers.count == 400 }
        #expect(server.asked.count == 128 + 256)
    }

    @Test func `numbers and localhost need no look-up`() async throws {
        let resolver = NameResolver { _ in .failure(NameError("nobody asks")) }
        let asker = try Asker()
        for name in ["9.9.9.9", "[::ffff:9.9.9.9]", "LOCALHOST", "a.localhost."] { try await asker.ask(name, resolver) }
        let local = NameAnswer.success([NumericAddress(high: 0, low: 1), NumericAddress(ipv4: 0x7f00_0001)])
        #expect(asker.answers == [.success([Self.nine]), .success([Self.nine]), local, local])
    }

    @Test func `a name is looked up by the system's own resolver`() async throws {
        let asker = try Asker()
        // Each line of the file is an address and its names; numbers and localhost are not looked up.
        let lines = try String(contentsOfFile: "/etc/hosts", encoding: .utf8).split(separator: "\n")
        let names = lines.filter { !$0.hasPrefix("#") }.flatMap { $0.split(whereSeparator: \.isWhitespace).dropFirst() }
        let name = try #require(names.first { !$0.contains("localhost") && !$0.hasPrefix("#") })
        try await asker.ask(String(name), NameResolver())
        try await asker.ask("no-such-host.invalid", NameResolver())
        try await eventually("both are told") { asker.answers.count == 2 }
        #expect(asker.answers.contains { if case .success(let found) = $0 { !found.isEmpty } else { false } })
        #expect(
            asker.answers.contains {
                if case .failure(let error) = $0 { "\(error)".contains("no-such-host.invalid: ") } else { false }
            })
    }

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1"), ("127.1", "127.0.0.1"), ("0x7f000001", "127.0.0.1"), ("[::1]", "[::1]"),
        ("::ffff:1.2.3.4", "1.2.3.4"), ("2001:DB8::1", "[2001:db8::1]"),
    ])
    func `numeric addresses are read in all their spellings`(text: String, plain: String) {
        #expect(NumericAddress(text)?.description == plain)
    }

    @Test(arguments: ["", "host", "1.2.3.4 x", "1.2.3.4.5", "[", "[]", "256.1.1.1", "127.0.0.1.test"])
    func `a host name is no numeric address`(text: String) { #expect(NumericAddress(text) == nil) }
}
