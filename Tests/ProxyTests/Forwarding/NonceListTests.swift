import Testing

@testable import Proxy

@Suite("The nonces of one upstream's servers")
struct NonceListTests {
    @Test func `a list keeps the newest nonce of each server, of those that were heard of last`() {
        var nonces = NonceList()
        func host(_ number: Int) -> [UInt8] { Array("h\(number).test".utf8) }
        for number in 0..<256 { nonces.note("a\(number)", of: host(number)) }
        nonces.note("b0", of: host(0))
        nonces.note("a256", of: host(256))
        #expect(nonces.newest(of: host(0)) == "b0")
        #expect(nonces.newest(of: host(1)) == nil)
        #expect(nonces.newest(of: host(2)) == "a2")
        #expect(nonces.newest(of: host(256)) == "a256")
    }
}
