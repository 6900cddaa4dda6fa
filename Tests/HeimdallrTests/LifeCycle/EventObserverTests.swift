import TestSupport
import Testing

@testable import Heimdallr

@Suite("observers of a client's events", .timeLimit(.minutes(1)))
struct EventObserverTests {
    private static func event(_ number: Int) -> HeimdallrEvent {
        HeimdallrEvent(client: "\(number)", kind: .needsAuthentication)
    }

    @Test func `an observer is told each event in order, and has no task while there is none`() async throws {
        let told = Recorder<String>()
        let observer = EventObserver { told.append($0.client) }
        #expect(!observer.isRunning)
        for round in 1...2 {
            for number in 100 * (round - 1)..<100 * round { observer.tell(Self.event(number)) }
            try await eventually("all are told") { told.all.count == 100 * round }
            try await eventually("no task is left") { !observer.isRunning }
        }
        #expect(told.all == (0..<200).map { "\($0)" })
    }

    @Test func `an observer that is slow loses its oldest events`() async throws {
        let (slowness, end) = AsyncStream<Void>.makeStream()
        let told = Recorder<String>()
        let observer = EventObserver { event in
            told.append(event.client)
            if event.client == "0" { for await _ in slowness {} }
        }
        observer.tell(Self.event(0))
        try await eventually("the first is told") { !told.all.isEmpty }
        for number in 1...1000 { observer.tell(Self.event(number)) }
        end.finish()
        try await eventually("the last is told") { told.all.last == "1000" }
        #expect(told.all == ["0"] + (1001 - EventObserver.backlog...1000).map { "\($0)" })
    }

    @Test func `a cancelled observer is told what came before, and its end can be awaited`() async throws {
        let told = Recorder<String>()
        let observer = EventObserver { event in
            told.append(event.client)
            if event.client == "0" { try? await Task.sleep(for: .seconds(60)) }
            told.append("end of \(event.client)")
        }
        observer.tell(Self.event(0))
        try await eventually("the first is told") { !told.all.isEmpty }
        observer.tell(Self.event(1))
        observer.cancel()
        observer.tell(Self.event(2))
        await observer.ended()
        #expect(told.all == ["0", "end of 0", "1", "end of 1"])
        #expect(!observer.isRunning)
    }

    @Test func `all observers of a client are told of its token, and of nothing after its shutdown`() async throws {
        let endpoint = try TokenEndpoint([.token("T1")])
        let client = try makeClient(endpoint)
        let told = Recorder<String>()
        let observers = ["a", "b"].map { name in client.observe { told.append("\(name) \($0.name)") } }
        _ = try await client.accessToken()
        try await eventually("both are told") { told.all.sorted() == ["a token_acquired", "b token_acquired"] }
        client.shutdown()
        client.invalidateAccessToken()
        for observer in observers { await observer.ended() }
        #expect(told.all.count == 2)
    }
}
