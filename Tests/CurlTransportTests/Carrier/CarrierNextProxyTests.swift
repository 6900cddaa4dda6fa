import CurlTransport
import Foundation
import HTTPMessage
import TestSupport
import Testing
import WireText

@Suite("a carrier goes through the proxy in between", .timeLimit(.minutes(1)))
struct CarrierNextProxyTests {
    @Test func `a carrier speaks plain http to the next proxy, with its credential`() async throws {
        let next = try RecordingOrigin { try $0.respond(body: "by the way") }
        let carriers = try await CarrierPoolOnLoop { $0.nextProxy = .url("http://user:pw@127.0.0.1:\(next.port)") }
        let user = try await carriers.connected(.plain(80, host: "far.example"))
        #expect(user.record.needsAbsoluteForm)
        #expect(user.record.authorization == "Basic dXNlcjpwdw==")
        try await user.send("GET http://far.example/ HTTP/1.1\r\nHost: far.example\r\n\r\n")
        #expect(try await user.answer().hasSuffix("by the way"))
        try await user.release()
        #expect(next.requests.map(\.line) == ["GET http://far.example/ HTTP/1.1"])
        #expect(try await carriers.counts == .init(open: 1, idle: 1))
    }

    @Test func `a carrier of https goes through the next proxy's tunnel, checked end to end`() async throws {
        let heads = Recorder<String>()
        let next = try Listener.tunnel(heads: heads)
        let nginx = try await Nginx.secure(["DNS:far.example"])
        let file = nginx.authority.certificateFile
        let carriers = try await CarrierPoolOnLoop {
            $0.nextProxy = .url("http://user:pw@127.0.0.1:\(next.port)")
            $0.trustAnchors = .only(file: file)
        }
        let origin = Origin.secure(nginx.httpsPort, host: "far.example")
        let user = try await carriers.exchange(origin)
        #expect(!user.record.needsAbsoluteForm && user.record.authorization == "")
        #expect(user.record.text.contains("server-name: far.example\n"))
        let head = try #require(heads.all.first)
        #expect(head.hasPrefix("CONNECT far.example:\(nginx.httpsPort) HTTP/1.1\r\n"))
        #expect(head.contains("Proxy-Authorization: Basic dXNlcjpwdw==\r\n"))
        #expect(head.contains("\r\nUser-Agent: \(Product.userAgent)\r\n"))
        #expect(
            try await carriers.failure(.secure(nginx.httpsPort, host: "near.example")).kind == .tlsCertificate)
    }

    @Test func `a carrier of another protocol goes through a tunnel, too, and serves nobody else`() async throws {
        let heads = Recorder<String>()
        let next = try Listener.tunnel(heads: heads)
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop { $0.nextProxy = .url("http://127.0.0.1:\(next.port)") }
        let user = try await carriers.connected(.plain(origin.port), tunnels: true)
        #expect(!user.record.needsAbsoluteForm)
        try await user.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try await user.answer().hasSuffix("ok"))
        try await user.release()
        #expect(heads.all.first?.hasPrefix("CONNECT 127.0.0.1:\(origin.port) ") == true)
        #expect(try await carriers.counts == .init())
    }

    @Test(arguments: [
        "HTTP/1.1 403 Forbidden\r\n\r\n", "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\n\r\n", "",
        "garbage\r\n\r\n",
    ])
    func `a carrier whose next proxy refuses the tunnel fails as the proxy's fault`(answer: String) async throws {
        let heads = Recorder<String>()
        let next = try Listener.tunnel(answer, heads: heads)
        let carriers = try await CarrierPoolOnLoop { $0.nextProxy = .url("http://127.0.0.1:\(next.port)") }
        #expect(try await carriers.failure(.secure(443, host: "far.example")).kind == .proxy)
        #expect(try await carriers.failure(.plain(80, host: "far.example"), tunnels: true).kind == .proxy)
        #expect(heads.all.count == 2)
    }

    /// libcurl throws away the body of a 407 in one call, for as long as it comes.
    @Test(arguments: [
        "HTTP/1.1 407 X\r\nTransfer-Encoding: chunked\r\n\r\n", "HTTP/1.1 407 X\r\nContent-Length: 99999999999\r\n\r\n",
        "HTTP/1.1 200 X\r\n",
    ])
    func `a proxy that talks without end does not hold the loop`(answer: String) async throws {
        let next = try Listener { peer in
            _ = peer.readHead()
            peer.write(answer)
            let more = answer.contains("chunked") ? "1\r\nx\r\n" : answer.contains("407") ? "xxxx" : "A: b\r\n"
            let block = String(repeating: more, count: 2000)
            for _ in 0..<2000 { peer.write(block) }
        }
        let carriers = try await CarrierPoolOnLoop { $0.nextProxy = .url("http://127.0.0.1:\(next.port)") }
        let begin = ContinuousClock.now
        #expect(try await carriers.failure(.secure(443, host: "far.example")).kind == .proxy)
        #expect(ContinuousClock.now - begin < .seconds(4))
    }

    @Test func `a carrier whose next proxy is not there fails as the proxy's fault`() async throws {
        let port = try freePort()
        for url in ["http://127.0.0.1:\(port)", "http://does-not-exist.invalid:1", "socks5://127.0.0.1:\(port)"] {
            let carriers = try await CarrierPoolOnLoop { $0.nextProxy = .url(url) }
            for origin in [Origin.plain(80, host: "127.0.0.1"), .secure(443, host: "127.0.0.1")] {
                #expect(try await carriers.failure(origin).kind == .proxy)
            }
        }
    }

    @Test func `a SOCKS proxy carries a connection that it does not read`() async throws {
        let names = Recorder<String>()
        let next = try Self.socks(names: names)
        let origin = try RecordingOrigin()
        let nginx = try await Nginx.secure()
        let file = nginx.authority.certificateFile
        for scheme in ["socks5", "socks5h"] {
            let carriers = try await CarrierPoolOnLoop {
                $0.nextProxy = .url("\(scheme)://127.0.0.1:\(next.port)")
                $0.trustAnchors = .only(file: file)
            }
            let user = try await carriers.exchange(.plain(origin.port, host: "localhost"))
            #expect(!user.record.needsAbsoluteForm)
            #expect(user.record.text.hasSuffix("ok"))
            #expect(
                try await carriers.exchange(.secure(nginx.httpsPort)).record.text.contains("server-name: localhost"))
        }
        // With the h, the proxy looks the name up.
        #expect(names.all.suffix(2) == ["localhost", "localhost"])
        #expect(names.all.prefix(2).allSatisfy { $0 != "localhost" })
    }

    @Test func `without variables of the environment a carrier goes to the origin itself`() async throws {
        // Nobody in this process has set any of the variables.
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop { $0.nextProxy = .environment }
        #expect(try await carriers.exchange(.plain(origin.port)).record.needsAbsoluteForm == false)
    }

    /// Without a password; records the names that are asked for (RFC 1928).
    private static func socks(names: Recorder<String>) throws -> Listener {
        try Listener { peer in
            guard peer.read().first == 5 else { return }
            peer.write([5, 0])
            let request = peer.read()
            guard request.count > 6 else { return }
            let end: Int
            switch request[3] {
            case 1: end = 8
            case 3: end = 5 + Int(request[4])
            default: end = 20
            }
            names.append(request[3] == 3 ? String(decoding: request[5..<end], as: UTF8.self) : "address")
            guard let other = Peer.connect(port: UInt16(request[end]) << 8 | UInt16(request[end + 1])) else { return }
            peer.write([5, 0, 0, 1, 127, 0, 0, 1, 0, 0])
            Thread.detachNewThread { other.relay(to: peer) }
            peer.relay(to: other)
        }
    }
}
