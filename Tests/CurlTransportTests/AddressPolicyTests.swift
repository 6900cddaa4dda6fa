@testable import CurlTransport
import HTTPMessage
import Reactor
import TestSupport
import Testing

@Suite("which addresses may be dialled", .timeLimit(.minutes(1)))
struct AddressPolicyTests {
    private func judge(_ host: String, port: UInt16 = 80, _ policy: AddressPolicy) throws -> AddressPolicy.Verdict {
        policy.judge(try #require(SocketAddress(numericHost: host, port: port), "\(host)"))
    }

    @Test(arguments: [
        "127.0.0.1", "127.255.255.255", "0.0.0.0", "0.1.2.3", "10.0.0.0", "10.255.255.255", "100.64.0.1",
        "100.127.255.255", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1",
        "192.88.99.1", "192.168.0.1",
        "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.250", "240.0.0.1",
        "255.255.255.255", "::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "64:ff9b:1::1", "::ffff:0:7f00:1", "100:0:0:1::1", "100::1", "2001::1",
        "2001:db8::1", "2002:7f00:1::",
        "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "febf::1", "fec0::1", "ff02::1",
    ])
    func `no special-purpose address counts as public`(host: String) throws {
        var policy = AddressPolicy()
        #expect(try judge(host, policy) == .allowed)
        policy.publicOnly = true
        #expect(try judge(host, policy) == .denied)
    }

    @Test(arguments: [
        "1.1.1.1", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
        "128.0.0.1", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0", "192.0.1.1", "192.167.255.255",
        "192.169.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255", "2606:4700::1111", "2a00::1", "2003::1",
        "::ffff:8.8.8.8",
    ])
    func `every address outside of the special blocks counts as public`(host: String) throws {
        var policy = AddressPolicy()
        policy.publicOnly = true
        #expect(try judge(host, policy) == .allowed)
    }

    @Test(arguments: [
        ("10.0.0.0/8", "10.1.2.3", true), ("10.0.0.0/8", "11.1.2.3", true), ("10.0.0.0/8", "192.168.1.1", false),
        ("10.0.0.0/8", "::ffff:10.1.2.3", true), ("192.168.1.7", "192.168.1.7", true),
        ("192.168.1.7", "192.168.1.8", false),
        ("192.168.1.0/25", "192.168.1.127", true), ("192.168.1.0/25", "192.168.1.128", false),
        ("fd00::/8", "fd12::1", true),
        ("fd00::/8", "fc12::1", false), ("::1", "::1", true), ("::1/128", "::2", false),
        ("0.0.0.0/0", "127.0.0.1", true),
        ("0.0.0.0/0", "::1", false), ("::/0", "127.0.0.1", true), ("::/0", "fe80::1", true),
        ("::ffff:10.0.0.0/104", "10.9.9.9", true), ("::ffff:10.0.0.0/104", "192.168.0.1", false),
        ("fd00:1:2:3::/64", "fd00:1:2:3:4::", true), ("fd00:1:2:3::/64", "fd00:1:2:4::", false),
        ("fd00::8000:0:0:0/65", "fd00::8000:0:0:1", true), ("fd00::8000:0:0:0/65", "fd00::1", false),
    ])
    func `exceptions cover their block and nothing else`(block: String, host: String, isCovered: Bool) throws {
        var policy = AddressPolicy()
        policy.publicOnly = true
        policy.exceptions = [try #require(AddressBlock(block))]
        #expect(try judge(host, policy) == (isCovered ? .allowed : .denied))
    }

    @Test(arguments: [
        "", "/8", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0/8", "::/129", "10.0.0.0/8/8", "host/8", "10.0.0.0/",
        "10.0.0.0/ 8",
    ])
    func `a text that is no address block is refused`(text: String) {
        #expect(AddressBlock(text) == nil)
    }

    @Test(arguments: [
        ("127.0.0.1", "127.0.0.1", 8080, true), ("127.0.0.1", "127.0.0.1", 8081, false),
        ("127.0.0.1", "::ffff:127.0.0.1", 8080, true),
        ("127.0.0.1", "0.0.0.0", 8080, true), ("127.0.0.1", "127.0.0.2", 8080, false),
        ("127.0.0.1", "10.0.0.1", 8080, false),
        ("0.0.0.0", "127.0.0.1", 8080, true), ("0.0.0.0", "127.9.9.9", 8080, true), ("0.0.0.0", "0.0.0.0", 8080, true),
        ("0.0.0.0", "192.0.2.77", 8080, false), ("::", "::1", 8080, true), ("::", "127.0.0.1", 8080, true),
        ("::1", "::1", 8080, true), ("::1", "::", 8080, true), ("10.9.9.9", "10.9.9.9", 8080, true),
        ("10.9.9.9", "0.0.0.0", 8080, false),
    ])
    func `our own listeners are told apart from their neighbours`(own: String, host: String, port: UInt16, isOwn: Bool)
        throws
    {
        var policy = AddressPolicy()
        policy.own = [try #require(SocketAddress(numericHost: own, port: 8080))]
        #expect(try judge(host, port: port, policy) == (isOwn ? .own : .allowed))
        // Whatever else is allowed: a loop is a loop.
        policy.publicOnly = true
        #expect((try judge(host, port: port, policy) == .own) == isOwn)
    }

    @Test(arguments: [
        "127.0.0.1", "localhost", "2130706433", "0x7f000001", "017700000001", "127.1", "[::ffff:127.0.0.1]", "0.0.0.0",
        "0",
    ])
    func `the dialled address is judged, however its name is spelt`(host: String) async throws {
        let origin = try RecordingOrigin()
        let closed = try Calls { $0.addressPolicy.publicOnly = true }
        let record = try await closed.send(Request(.plain(origin.port, host: host)))
        #expect([.addressDenied, .nameNotResolved].contains(record.error?.kind))
        #expect(origin.connections.isEmpty)
        let open = try Calls {
            $0.addressPolicy.publicOnly = true
            $0.addressPolicy.exceptions = ["127.0.0.0/8", "0.0.0.0/8", "::1"].compactMap { AddressBlock($0) }
        }
        if record.error?.kind == .addressDenied {
            #expect(try await open.send(Request(.plain(origin.port, host: host))).text == "ok")
        }
        let port = origin.port
        let looping = try Calls {
            $0.addressPolicy.own = [SocketAddress(.ipv4(address: 0x7f00_0001, port: port))]
        }
        if host != "localhost", record.error?.kind == .addressDenied {
            #expect(try await looping.send(Request(.plain(origin.port, host: host))).error?.kind == .loop)
        }
    }
}
