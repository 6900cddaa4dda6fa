@testable import CurlTransport
import Glibc
import Reactor
import TestSupport
import Testing

@Suite("a peer that has gone without a word", .timeLimit(.minutes(1)))
struct CarrierPeerTests {
    private struct Watch: Sendable, Equatable {
        var probes: Int32 = 0
        var firstProbe: Int32 = 0
        var limit: Int32 = 0
    }

    private static func option(_ level: Int32, _ option: Int32, of descriptor: Int32) -> Int32 {
        var value: Int32 = -1
        var length = socklen_t(MemoryLayout<Int32>.size)
        _ = unsafe getsockopt(descriptor, level, option, &value, &length)
        return value
    }

    private static func watch(_ user: CarrierUser, on loop: EventLoop) async throws -> Watch {
        try await loop.run {
            guard let descriptor = user.carrier?.descriptor else { throw TestFailure("no connection") }
            let level = Int32(IPPROTO_TCP)
            return Watch(
                probes: option(SOL_SOCKET, SO_KEEPALIVE, of: descriptor),
                firstProbe: option(level, TCP_KEEPIDLE, of: descriptor),
                limit: option(level, TCP_USER_TIMEOUT, of: descriptor))
        }
    }

    @Test func `the kernel probes a silent peer, and does not take one that reads nothing for gone`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.connected(.plain(origin.port))
        #expect(
            try await Self.watch(user, on: carriers.loop) == Watch(probes: 1, firstProbe: 15, limit: 0))
        let tunnel = try await carriers.connected(.plain(origin.port), tunnels: true)
        #expect(try await Self.watch(tunnel, on: carriers.loop) == Watch(probes: 1, firstProbe: 15, limit: 0))
    }

    @Test func `a server that has a request and is slow has acknowledged it`() async throws {
        let listener = try RawListener()
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.connected(.plain(listener.port))
        let peer = try await listener.accept()
        try await user.send("GET / HTTP/1.1\r\n\r\n")
        try await eventually("an acknowledgement") {
            try await carriers.loop.run {
                guard let descriptor = user.carrier?.descriptor else { throw TestFailure("no connection") }
                if case .heard = TCPPeer(descriptor).reaction(after: .zero) { return true }
                return false
            }
        }
        withExtendedLifetime(peer) {}
    }
}
