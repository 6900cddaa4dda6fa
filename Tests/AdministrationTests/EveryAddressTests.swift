import Reactor
import Testing

@testable import Administration

@Suite("addresses of the admin port")
struct EveryAddressTests {
    @Test func `the admin port at every address goes without IPv6 where the kernel has none`() throws {
        let addresses = try AdminListeners.addresses(AdministrationSettings(host: "::", port: 8081))
        #expect(addresses.map(\.description) == ["[::]:8081", "0.0.0.0:8081"])
        let one = try AdminListeners.addresses(AdministrationSettings(host: "::1", port: 8081))
        #expect(one.map(\.description) == ["[::1]:8081"])
    }
}
