import Synchronization
import TestSupport
import Testing

@testable import Heimdallr

/// RFC 8705 section 3: a token serves with the certificate that it was asked for with, and with no other.
@Suite("tokens that are bound to the client's certificate", .timeLimit(.minutes(1)))
struct CertificateBoundTokenTests {
    /// The client certificate that new connections show.
    private final class Shown: Sendable {
        private let number: Atomic<UInt64>
        init(_ number: UInt64) { self.number = Atomic(number) }
        var value: UInt64 { number.load(ordering: .sequentiallyConsistent) }
        func rotate(to next: UInt64) { number.store(next, ordering: .sequentiallyConsistent) }
    }

    private func client(
        _ endpoint: TokenEndpoint, _ shown: Shown, store: any OAuthAccessTokenStore = OAuthAccessTokenMemoryStore(),
        clock: HeimdallrClock = .system, dpop: DPoPSetting? = nil
    ) throws -> Heimdallr {
        try makeClient(endpoint, store: store, clock: clock) {
            $0.certificate = { shown.value }
            $0.dpop = dpop
        }
    }

    @Test func `a token is not used once its certificate has been replaced, and the next one is fetched`() async throws
    {
        let endpoint = try TokenEndpoint([.token("T1"), .token("T2")])
        let (shown, clock) = (Shown(1), ManualClock())
        let client = try client(endpoint, shown, clock: clock.clock)
        let first = try await client.accessToken()
        #expect(first.certificate == 1)
        #expect(client.currentToken() == first && client.currentToken(for: "a") == first && client.hasAccessToken)
        shown.rotate(to: 2)
        #expect(!client.hasAccessToken)
        #expect(client.currentToken(for: "a") == nil)
        #expect(client.currentToken() == nil)
        clock.advance(by: .seconds(2))
        let second = try await client.accessToken()
        #expect(second.value == Secret("T2") && second.certificate == 2)
    }

    @Test func `a token that was asked for while the certificate changed is not used either`() async throws {
        let gate = Gate()
        let endpoint = try TokenEndpoint { _, number in
            if number == 0 { gate.wait() }
            return .token("T\(number + 1)")
        }
        let shown = Shown(1)
        let client = try client(endpoint, shown)
        client.start()
        _ = try await endpoint.requests(1)
        shown.rotate(to: 2)
        gate.open()
        let second = try await eventually("a token of the new certificate") { client.currentToken() }
        #expect(second.value == Secret("T2") && second.certificate == 2)
    }

    @Test(arguments: [false, true])
    func `a token of the store serves with its own certificate only`(proves: Bool) async throws {
        let endpoint = try TokenEndpoint { _, number in .token("T\(number + 1)", type: proves ? "DPoP" : "Bearer") }
        let dpop = proves ? DPoPSetting.ownKey : nil
        let (store, shown) = (RecordingStore(), Shown(1))
        let first = try client(endpoint, shown, store: store, dpop: dpop)
        _ = try await first.accessToken()
        first.shutdown()
        let second = try client(endpoint, shown, store: store, dpop: dpop)
        #expect(try await second.accessToken().value == Secret("T1"))
        second.shutdown()
        shown.rotate(to: 2)
        let third = try client(endpoint, shown, store: store, dpop: dpop)
        #expect(try await third.accessToken().value == Secret("T2"))
        third.shutdown()
        // A client of other settings has no use for a bound token.
        let unbound = try makeClient(endpoint, store: store) { $0.dpop = dpop }
        #expect(try await unbound.accessToken().value == Secret("T3"))
    }
}
