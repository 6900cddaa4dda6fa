import Heimdallr
import Reactor
import TestSupport
import Testing

@testable import Proxy

@Suite("a token that has gone leaves nothing with the loops", .stopsProxies, .timeLimit(.minutes(1)))
struct ForgottenCredentialTests {
    @Test(arguments: [1, 2])
    func `the fields made of a forgotten credential are wiped`(threads: Int) async throws {
        let proxy = try await ProxyInProcess(threads: threads)
        for _ in 0..<10 { #expect(try await proxy.request().status == 200) }
        #expect(try await holders(proxy) >= 1)
        try await proxy.client.clearAccessToken()
        try await eventually("no shard holds the credential") { try await holders(proxy) == 0 }
        #expect(try await proxy.request().status == 200)
    }

    private func holders(_ proxy: ProxyInProcess) async throws -> Int {
        var count = 0
        for shard in proxy.server.current.shards {
            count += try await shard.loop.run {
                shard.value.installed.upstreams.filter { !$0.injected.tokenValues.isEmpty }.count
            }
        }
        return count
    }
}
