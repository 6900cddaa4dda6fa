import CurlTransport
import Foundation
import Reactor
import TestSupport
import Testing

@Suite("connections are counted, and their certificates' ends known", .timeLimit(.minutes(1)))
struct ConnectionCountsTests {
    /// The server's certificate lasts three days, its issuer's a year.
    private static func server() async throws -> Nginx {
        let authority = try await PrivateCA()
        return try await Nginx(certificate: try await authority.server(days: 3))
    }

    /// Whether a certificate ends in so many days, give or take an hour.
    private func ends(_ counts: ConnectionCounts, inDays days: Double) -> Bool {
        guard let end = counts.certificateEnd else { return false }
        return abs(Double(end) - Date().timeIntervalSince1970 - days * 86_400) < 3600
    }

    @Test func `connections of carriers are counted, with the ends of their certificates`() async throws {
        let nginx = try await Self.server()
        let counts = ConnectionCounts()
        let trust = nginx.trust
        let carriers = try await CarrierPoolOnLoop {
            trust(&$0)
            $0.counts = counts
        }
        #expect(counts.certificateEnd == nil)
        for _ in 0..<3 { _ = try await carriers.exchange(nginx.origin) }
        #expect(counts.opened == 1)
        #expect(counts.reused == 2)
        #expect(ends(counts, inDays: 3))
        // It resumes the session, and the end stays known.
        _ = try await carriers.exchange(nginx.origin, newConnection: true)
        #expect(counts.opened == 2)
        #expect(ends(counts, inDays: 3))
        _ = try await carriers.failure(.secure(1))
        #expect(counts.opened == 2)
    }

    @Test func `a connection in the clear shows no certificate`() async throws {
        let nginx = try await Nginx()
        let counts = ConnectionCounts()
        let carriers = try await CarrierPoolOnLoop { $0.counts = counts }
        _ = try await carriers.exchange(.plain(nginx.httpPort))
        #expect(counts.opened == 1)
        #expect(counts.certificateEnd == nil)
    }
}
