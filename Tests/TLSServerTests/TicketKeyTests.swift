import CLibssl
import TestSupport
import Testing

@testable import TLSServer

@Suite("Keys of session tickets are replaced", .timeLimit(.minutes(1)))
struct TicketKeyTests {
    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION], [true, false])
    func `a ticket is good as long as the keys of its time`(version: Int32, areCurrent: Bool) async throws {
        let front = TLSFront(keyLife: areCurrent ? .seconds(3600) : .zero)
        let hosts = try await Hosts.make()
        func talk(_ session: MemorySession?) async throws -> MemoryTalk {
            let talk = try await MemoryTalk { loop in
                try Conversation(
                    MemoryClient(version: version, session: session), on: loop,
                    server: TLSServerLoop(on: loop, limit: 10, patience: .seconds(60), front: front),
                    contexts: { hosts.context($0) })
            }
            try await talk.go("the handshake") { $0.ends.count == 1 && $0.client.isDone }
            return talk
        }
        let first = try await talk(nil)
        let session = try await first.now { talk in
            for _ in 0..<3 { talk.step() }
            talk.client.end()
            return try #require(talk.client.session)
        }
        #expect(session.isResumable)
        #expect(try await talk(session).now { $0.client.isResumed } == areCurrent)
    }
}
