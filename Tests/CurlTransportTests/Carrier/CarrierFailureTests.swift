import CurlTransport
import HTTPMessage
import Reactor
import TestSupport
import Testing

@Suite("a carrier that can't be had says whose fault it is", .timeLimit(.minutes(1)))
struct CarrierFailureTests {
    @Test func `a carrier tells a refused port, a silent host and an unknown name apart`() async throws {
        let carriers = try await CarrierPoolOnLoop { $0.connectTimeout = .milliseconds(300) }
        #expect(try await carriers.failure(.plain(try freePort())).kind == .connectionRefused)
        let deaf = try DeafPort()
        #expect(try await carriers.failure(.plain(deaf.port)).kind == .connectionTimedOut)
        let patient = try await CarrierPoolOnLoop()
        let error = try await patient.failure(.plain(80, host: "does-not-exist.invalid"))
        #expect(error.kind == .nameNotResolved)
        #expect(error.description.contains("does-not-exist.invalid"))
        // No route: the discard prefix, or nothing of IPv6 at all.
        #expect(
            [.connectionFailed, .connectionTimedOut, .connectionRefused]
                .contains(try await carriers.failure(.plain(80, host: "[100::1]")).kind))
        #expect(try await carriers.counts == .init())
    }

    @Test func `a carrier tells failures of the TLS handshake apart`() async throws {
        let leaving = try Listener { $0.close() }
        let carriers = try await CarrierPoolOnLoop { $0.connectTimeout = .seconds(30) }
        #expect(try await carriers.failure(.secure(leaving.port)).kind == .tlsHandshake)
        let plain = try await Nginx()
        #expect(try await carriers.failure(.secure(plain.httpPort)).kind == .tlsHandshake)
        let silent = try RawListener()
        let hurried = try await CarrierPoolOnLoop { $0.connectTimeout = .milliseconds(300) }
        #expect(try await hurried.failure(.secure(silent.port)).kind == .connectionTimedOut)
    }

    @Test func `a carrier to an address that may not be dialled is refused`() async throws {
        let origin = try RecordingOrigin()
        let port = origin.port
        let closed = try await CarrierPoolOnLoop { $0.addressPolicy.publicOnly = true }
        for host in ["127.0.0.1", "localhost", "2130706433", "[::1]", "[::ffff:127.0.0.1]"] {
            let kind = try await closed.failure(.plain(port, host: host)).kind
            #expect([.addressDenied, .nameNotResolved].contains(kind), "\(host)")
        }
        #expect(origin.connections.isEmpty)
        let open = try await CarrierPoolOnLoop {
            $0.addressPolicy.publicOnly = true
            $0.addressPolicy.exceptions = ["127.0.0.0/8"].compactMap { AddressBlock($0) }
        }
        _ = try await open.exchange(.plain(port))
        let looping = try await CarrierPoolOnLoop {
            $0.addressPolicy.own = [SocketAddress(.ipv4(address: 0x7f00_0001, port: port))]
        }
        #expect(try await looping.failure(.plain(port)).kind == .loop)
        #expect(try await looping.counts == .init())
    }
}
