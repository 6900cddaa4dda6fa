import Reactor
import Testing

@testable import CurlTransport

@Suite("which addresses may be dialled")
struct AddressPolicyTests {
    private func judge(_ address: String, port: UInt16 = 80, _ policy: AddressPolicy) throws -> AddressPolicy.Verdict {
        policy.judge(try #require(SocketAddress(numericHost: address, port: port)))
    }

    @Test(arguments: [
        "127.0.0.1", "127.9.9.9", "0.0.0.0", "10.1.2.3", "100.64.0.1", "169.254.169.254", "172.16.0.1",
        "172.31.255.255",
        "192.168.1.1", "224.0.0.1", "255.255.255.255", "::1", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "fe80::1",
        "fd00::1", "ff02::1", "64:ff9b::7f00:1", "2002:7f00:1::", "::127.0.0.1",
    ])
    func `a special one is not, when only public ones may be`(address: String) throws {
        var policy = AddressPolicy()
        policy.publicOnly = true
        #expect(try judge(address, policy) == .denied)
    }

    @Test(arguments: ["93.184.216.34", "172.32.0.1", "100.128.0.1", "11.0.0.1", "2606:4700::1111", "::ffff:8.8.8.8"])
    func `a public one is`(address: String) throws {
        var policy = AddressPolicy()
        policy.publicOnly = true
        #expect(try judge(address, policy) == .allowed)
    }

    @Test func `an exception covers its block, in the mapped form too, and no more`() throws {
        var policy = AddressPolicy()
        policy.publicOnly = true
        policy.exceptions = try [#require(AddressPolicy.Block("10.1.0.0/16"))]
        #expect(try judge("10.1.2.3", policy) == .allowed)
        #expect(try judge("::ffff:10.1.2.3", policy) == .allowed)
        #expect(try judge("10.2.0.1", policy) == .denied)
    }

    @Test func `one's own listener is a loop, by whatever address it is reached`() throws {
        var policy = AddressPolicy()
        policy.own = try [#require(SocketAddress(numericHost: "0.0.0.0", port: 8080))]
        #expect(try judge("127.0.0.1", port: 8080, policy) == .own)
        #expect(try judge("127.0.0.1", port: 8081, policy) == .allowed)
        policy.own = try [#require(SocketAddress(numericHost: "127.0.0.1", port: 8080))]
        #expect(try judge("127.0.0.1", port: 8080, policy) == .own)
        #expect(try judge("::ffff:127.0.0.1", port: 8080, policy) == .own)
        #expect(try judge("0.0.0.0", port: 8080, policy) == .own)
    }

    @Test(arguments: ["10.0.0.0/33", "10.0.0/8", "x", "::/129", "10.0.0.0/", "10.0.0.0/-1", ""])
    func `what is no block is none`(text: String) {
        #expect(AddressPolicy.Block(text) == nil)
    }
}
