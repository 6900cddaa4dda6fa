import CurlTransport
import Foundation
import HTTPMessage
import TestSupport
import Testing

@testable import Reactor

@Suite("past max_connections carriers are waited for, and every wait can be given up", .timeLimit(.minutes(1)))
struct CarrierQueueTests {
    @Test func `carriers in the queue are served in the order of arrival`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop { $0.maxConnections = 1 }
        let holder = try await carriers.connected(.plain(origin.port))
        var waiting: [CarrierUser] = []
        for _ in 0..<5 { waiting.append(try await carriers.connect(.plain(origin.port))) }
        #expect(try await carriers.counts == .init(open: 1, waiting: 5))
        try await waiting[1].cancel()
        try await holder.release()
        for number in [0, 2, 3, 4] {
            try await waiting[number].arrived()
            for later in waiting[(number + 1)...] { #expect(later.record.arrivals == 0) }
            // No later request overtakes.
            if number == 0 { waiting.append(try await carriers.connect(.plain(origin.port))) }
            try await waiting[number].release()
        }
        try await waiting[5].arrived()
        try await waiting[5].close()
        #expect(waiting[1].record.arrivals == 0 && waiting[1].record.failure == nil)
        try await eventually("the only one at the origin") { origin.connections.count == 1 }
        #expect(try await carriers.counts == .init())
    }

    @Test func `a connection that is closed makes room for one that is dialled`() async throws {
        let first = try RecordingOrigin()
        let second = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop { $0.maxConnections = 1 }
        let holder = try await carriers.connected(.plain(first.port))
        let other = try await carriers.connect(.plain(second.port))
        let fresh = try await carriers.connect(.plain(second.port), newConnection: true)
        try await holder.close()
        try await other.arrived()
        try await other.release()
        try await fresh.arrived()
        #expect(fresh.record.isReused == false)
        try await eventually("both at the origin") { second.connections.count == 2 }
        try await fresh.release()
    }

    @Test func `a carrier in the queue fails after connect_timeout`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop {
            $0.maxConnections = 1
            $0.connectTimeout = .milliseconds(200)
        }
        let holder = try await carriers.connected(.plain(origin.port))
        let began = ContinuousClock.now
        #expect(try await carriers.failure(.plain(origin.port)).kind == .connectionLimit)
        #expect(ContinuousClock.now - began >= .milliseconds(195))
        #expect(try await carriers.counts == .init(open: 1))
        try await holder.release()
        #expect(try await carriers.exchange(.plain(origin.port)).record.isReused)
    }

    @Test func `the wait in the queue and the dial together have connect_timeout`() async throws {
        let origin = try RecordingOrigin()
        let deaf = try DeafPort()
        let carriers = try await CarrierPoolOnLoop {
            $0.maxConnections = 1
            $0.connectTimeout = .seconds(1)
        }
        let first = try await carriers.connected(.plain(origin.port))
        let began = ContinuousClock.now
        let late = try await carriers.connect(.plain(deaf.port))
        // Time itself: a dial with a timeout of its own would end at 1.25 s.
        try await Task.sleep(for: .milliseconds(250))
        try await first.close()
        let error = try await eventually("a failure") { late.record.failure }
        #expect(error.kind == .connectionTimedOut)
        #expect(ContinuousClock.now - began < .milliseconds(1200))
    }

    @Test func `a carrier can be given up while its name is looked up`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let names = NameResolver(lookUp: { _ in
            gate.wait()
            return .success([])
        })
        let carriers = try await CarrierPoolOnLoop { $0.names = names }
        for _ in 0..<5 {
            let user = try await carriers.connect(.plain(80, host: "slow.test"))
            try await user.cancel()
            #expect(try await carriers.counts == .init())
            #expect(user.record.failure == nil && user.record.arrivals == 0)
        }
    }

    @Test func `a carrier can be given up while connecting, in its handshake, and in a proxy's`() async throws {
        let deaf = try DeafPort()
        let silent = try RawListener()
        let carriers = try await CarrierPoolOnLoop()
        let proxied = try await CarrierPoolOnLoop { $0.nextProxy = .url("http://127.0.0.1:\(silent.port)") }
        let socks = try await CarrierPoolOnLoop { $0.nextProxy = .url("socks5h://127.0.0.1:\(silent.port)") }
        let cases: [(CarrierPoolOnLoop, Origin, Bool)] = [
            (carriers, .plain(deaf.port), false), (carriers, .secure(silent.port), true),
            (proxied, .secure(443, host: "far.example"), true), (socks, .plain(80, host: "far.example"), true),
        ]
        for (carriers, origin, isAccepted) in cases {
            let user = try await carriers.connect(origin)
            var peer: RawClient?
            if isAccepted {
                peer = try await silent.accept()
                _ = try await peer?.read(count: 3)
            } else {
                try await deaf.isDialled()
            }
            #expect(try await carriers.counts == .init(open: 1))
            try await user.cancel()
            #expect(try await carriers.counts == .init())
            if let peer { _ = try await peer.readToEnd() }
            #expect(user.record.failure == nil && user.record.arrivals == 0)
        }
    }

    @Test func `a wait that is over can be given up too`() async throws {
        let origin = try RecordingOrigin()
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.connected(.plain(origin.port))
        try await user.cancel()
        #expect(try await carriers.counts == .init(open: 1))
        try await user.close()
    }

    @Test func `a pool that is released closes its connections`() async throws {
        let listener = try RawListener()
        let peer = try await peerOfALostPool(listener)
        #expect(try await peer.readToEnd() == Array("bye".utf8))
    }

    private func peerOfALostPool(_ listener: RawListener) async throws -> RawClient {
        let carriers = try await CarrierPoolOnLoop()
        let user = try await carriers.connected(.plain(listener.port))
        let peer = try await listener.accept()
        try await user.send("bye")
        try await user.release()
        _ = try await carriers.connect(.secure(listener.port))
        return peer
    }
}
