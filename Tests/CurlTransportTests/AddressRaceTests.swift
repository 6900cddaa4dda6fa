import CurlTransport
import Glibc
import HTTPMessage
@testable import Reactor
import Synchronization
import TestSupport
import Testing

@Suite("each address of a name gets its chance", .timeLimit(.minutes(1)))
struct AddressRaceTests {
    /// An address beside 127.0.0.1, for the silent one.
    private static let beside: UInt32 = 0x7f00_0002

    private static func names(_ hosts: [String: [String]]) -> NameResolver {
        NameResolver(lookUp: { name in
            guard let found = hosts[name] else { return .failure(NameError("could not resolve host \(name)")) }
            return .success(found.compactMap { NumericAddress($0) })
        })
    }

    private static func two(_ host: String = "two.test", _ more: [String: [String]] = [:]) -> NameResolver {
        names([host: ["127.0.0.2", "127.0.0.1"]].merging(more) { one, _ in one })
    }

    @Test func `a small call and a kept connection reach the second address, and later ones go there at once`()
        async throws
    {
        let origin = try RecordingOrigin()
        let deaf = try DeafPort(host: Self.beside, port: origin.port)
        let resolver = Self.two()
        let calls = try Calls { $0.names = resolver }
        #expect(try await calls.send(Request(.plain(deaf.port, host: "two.test"))).text == "ok")
        let carriers = try await CarrierPoolOnLoop { $0.names = resolver }
        let time = try await shortest(under: .milliseconds(200)) {
            try await ContinuousClock().measure {
                _ = try await carriers.exchange(.plain(deaf.port, host: "two.test"), newConnection: true)
            }
        }
        #expect(time < .milliseconds(200))
    }

    @Test func `the second address takes its turn after a quarter of a second, whatever the limit is`() async throws {
        let origin = try RecordingOrigin()
        let deaf = try DeafPort(host: Self.beside, port: origin.port)
        let time = try await shortest(under: .seconds(2)) {
            let resolver = Self.two()
            let carriers = try await CarrierPoolOnLoop {
                $0.names = resolver
                $0.connectTimeout = .seconds(50)
            }
            return try await ContinuousClock().measure {
                _ = try await carriers.exchange(.plain(deaf.port, host: "two.test"))
            }
        }
        #expect(time < .seconds(2))
    }

    @Test func `TLS checks the name at the address that has accepted`() async throws {
        let nginx = try await Nginx.secure(["DNS:two.test"])
        let file = nginx.authority.certificateFile
        let deaf = try DeafPort(host: Self.beside, port: nginx.httpsPort)
        let resolver = Self.two()
        let calls = try Calls {
            $0.names = resolver
            $0.trustAnchors = .only(file: file)
        }
        let record = try await calls.send(Request(.secure(deaf.port, host: "two.test")))
        #expect(record.text.contains("server-name: two.test\n"), "\(record)")
    }

    @Test func `a tunnel is dialled at the second address`() async throws {
        let far = try RawListener()
        let deaf = try DeafPort(host: Self.beside, port: far.port)
        let resolver = Self.two()
        let dialer = try await OnLoop({ $0.names = resolver }) { Dialer(options: $0, loop: $1) }
        let isConnected = Atomic(false)
        let attempt = try await dialer.loop.run {
            LoopBound(
                try dialer.value.value.dial(host: "two.test", port: deaf.port) {
                    if case .success = $0 { isConnected.store(true, ordering: .relaxed) }
                }, on: dialer.loop)
        }
        _ = try await far.accept()
        try await eventually("a socket") { isConnected.load(ordering: .relaxed) }
        withExtendedLifetime(attempt) {}
    }

    @Test(arguments: ["http", "socks5h"])
    func `a next proxy is reached at its second address`(scheme: String) async throws {
        let next = try Listener { peer in
            if scheme == "socks5h" {
                _ = peer.read()
                peer.write([5, 0])
                _ = peer.read()
                peer.write([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            }
            _ = peer.readHead()
            peer.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        let deaf = try DeafPort(host: Self.beside, port: next.port)
        let resolver = Self.two("next.test")
        let by = "\(scheme)://next.test:\(deaf.port)"
        let calls = try Calls {
            $0.names = resolver
            $0.nextProxy = .url(by)
        }
        #expect(try await calls.send(Request(.plain(80, host: "far.test"))).text == "ok")
    }

    @Test func `a SOCKS proxy that does not reach an address gets another one with the next connection`() async throws {
        let asked = Recorder<[UInt8]>()
        let next = try Listener { peer in
            _ = peer.read()
            peer.write([5, 0])
            let address = Array(peer.read().dropFirst(4).prefix(4))
            asked.append(address)
            // "Host unreachable".
            peer.write([5, address == [9, 8, 7, 6] ? 0 : 4, 0, 1, 0, 0, 0, 0, 0, 0])
            _ = peer.readHead()
            peer.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        let resolver = Self.names(["far.test": ["9.8.7.5", "9.8.7.6"]])
        let by = "socks5://127.0.0.1:\(next.port)"
        let calls = try Calls {
            $0.names = resolver
            $0.nextProxy = .url(by)
        }
        #expect(try await calls.send(Request(.plain(80, host: "far.test"))).error?.kind == .proxy)
        #expect(try await calls.send(Request(.plain(80, host: "far.test"))).text == "ok")
        #expect(asked.all == [[9, 8, 7, 5], [9, 8, 7, 6]])
    }

    @Test func `an address that accepts and says nothing in the handshake gives way to the other one`() async throws {
        let nginx = try await Nginx.secure(["DNS:two.test"])
        let file = nginx.authority.certificateFile
        let mute = try RawListener(host: Self.beside, port: nginx.httpsPort)
        let resolver = Self.two()
        let origin = Origin.secure(mute.port, host: "two.test")
        let hurried = try Calls {
            $0.names = resolver
            $0.connectTimeout = .milliseconds(500)
        }
        #expect(try await hurried.send(Request(origin)).error?.kind == .connectionTimedOut)
        let calls = try Calls {
            $0.names = resolver
            $0.trustAnchors = .only(file: file)
        }
        #expect(try await calls.send(Request(origin)).text.contains("server-name: two.test\n"))
    }

    @Test func `no address accepts: silence ends by the limit, refusals at once, and both say which`() async throws {
        let deaf = try DeafPort(host: 0)
        let resolver = Self.names([
            "deaf.test": ["127.0.0.2", "127.0.0.3"], "closed.test": ["127.0.0.2", "127.0.0.1"],
        ])
        let calls = try Calls {
            $0.names = resolver
            $0.connectTimeout = .milliseconds(400)
        }
        let silence = try await calls.send(Request(.plain(deaf.port, host: "deaf.test"))).error
        #expect(silence?.kind == .connectionTimedOut)
        #expect(silence?.message.contains("127.0.0.2:\(deaf.port): no answer") == true)
        #expect(silence?.message.contains("127.0.0.3:\(deaf.port): no answer") == true)
        try await eventually("no attempt is left") { try deaf.dials == 0 }
        #expect(try await calls.rests())
        let port = try freePort()
        let patient = try Calls { $0.names = resolver }
        let refusal = try await patient.send(Request(.plain(port, host: "closed.test"))).error
        #expect(refusal?.kind == .connectionRefused)
        #expect(refusal?.message.contains("127.0.0.2:\(port): connect: Connection refused") == true)
        let proxied = try Calls {
            $0.names = resolver
            $0.nextProxy = .url("http://closed.test:\(port)")
        }
        #expect(try await proxied.send(Request(.plain(80, host: "far.test"))).error?.kind == .proxy)
    }

    @Test func `a name with many silent addresses takes four sockets, and each has its attempt`() async throws {
        let deaf = try DeafPort(host: 0)
        let many = (2...13).map { "127.0.0.\($0)" }
        let resolver = Self.names(["many.test": many])
        let carriers = try await CarrierPoolOnLoop {
            $0.names = resolver
            $0.connectTimeout = .milliseconds(1200)
        }
        let user = try await carriers.connect(.plain(deaf.port, host: "many.test"))
        var most = 0
        while user.record.failure == nil {
            // The kernel's list is read in pieces: one reading may have the socket that a new one has replaced.
            most = max(most, min(try deaf.dials, try deaf.dials, try deaf.dials))
            try await Task.sleep(for: .milliseconds(5))
        }
        #expect((1...4).contains(most))
        #expect(user.record.failure?.kind == .connectionTimedOut)
        for address in many {
            #expect(user.record.failure?.message.contains("\(address):\(deaf.port): no answer") == true)
        }
    }

    @Test func `a cancelled attempt leaves no socket`() async throws {
        let deaf = try DeafPort(host: 0)
        let resolver = Self.two()
        let carriers = try await CarrierPoolOnLoop { $0.names = resolver }
        let user = try await carriers.connect(.plain(deaf.port, host: "two.test"))
        try await eventually("both are tried") { try deaf.dials == 2 }
        try await user.cancel()
        try await eventually("no attempt is left") { try deaf.dials == 0 }
        #expect(try await carriers.counts == .init())
    }
}
