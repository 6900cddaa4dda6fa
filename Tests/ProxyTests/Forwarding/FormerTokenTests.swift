import Configuration
import Heimdallr
import Synchronization
import TestSupport
import Testing

@Suite("a new token that an upstream does not know yet", .stopsProxies, .timeLimit(.minutes(2)))
struct FormerTokenTests {
    /// Refuses T2 until it is known, as GitHub does for a second or two.
    private final class Origin: Sendable {
        private let state = Mutex((isKnown: false, seen: [String]()))

        var seen: [String] { state.withLock { $0.seen } }
        func learn() { state.withLock { $0.isKnown = true } }

        func answer(_ exchange: OriginExchange) throws {
            let token = exchange.head.field("Authorization") ?? ""
            let isRefused = state.withLock { state in
                state.seen.append(token)
                return token == "Bearer T2" && !state.isKnown
            }
            let challenge = isRefused ? [("WWW-Authenticate", #"Bearer error="invalid_token""#)] : []
            try exchange.respond(isRefused ? 401 : 200, fields: challenge, body: "ok")
        }
    }

    @Test(arguments: ["replay", "pass"])
    func `a new token that is refused costs no third token request, and with replays no request at all`(
        handling: String
    ) async throws {
        let origin = Origin()
        let proxy = try await ProxyInProcess(upstream: "on_unauthorized: \(handling)") { try origin.answer($0) }
        #expect(try await proxy.request().status == 200)
        _ = try await proxy.client.refreshedToken()
        var statuses: [Int] = []
        for _ in 0..<20 { statuses.append(try await proxy.request().status) }
        #expect(statuses.filter { $0 == 401 }.count < (handling == "pass" ? 5 : 1))
        #expect(origin.seen.filter { $0 == "Bearer T2" }.count < 5, "it is not tried with each request")
        origin.learn()
        try await eventually("the new token is used") {
            let status = try await proxy.request().status
            return status == 200 && origin.seen.last == "Bearer T2"
        }
        #expect(try await proxy.request().status == 200)
        #expect(origin.seen.last == "Bearer T2")
        #expect(proxy.endpoint.requests.count == 2)
    }
}
