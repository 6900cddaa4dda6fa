import CurlTransport
import TestSupport
import Testing

@Suite("HTTP 2 where it is switched on", .timeLimit(.minutes(1)))
struct HTTP2Tests {
    /// A server and a pool that trusts it.
    private func serverAndPool(
        http2: Bool = true, locations: String = Nginx.sayWhatArrived
    ) async throws -> (Nginx, ConnectionPoolOnLoop) {
        let nginx = try await Nginx.secure(locations: locations)
        let trust = nginx.trust
        let pool = try await ConnectionPoolOnLoop {
            trust(&$0)
            $0.http2 = http2
        }
        return (nginx, pool)
    }

    @Test func `and nowhere else`() async throws {
        let (nginx, pool) = try await serverAndPool(http2: false)
        let record = try await pool.send(Request(.secure(nginx.httpsPort)))
        #expect(record.text.contains("protocol: HTTP/1.1\n"))
        #expect(!record.isHTTP2)
    }

    @Test func `and nothing else there: nothing is sent over HTTP 1.1`() async throws {
        let (nginx, pool) = try await serverAndPool()
        #expect(try await pool.send(Request(.plain(nginx.httpPort))).error?.kind == .http2Missing)
        let old = try await Nginx(
            certificate: try await nginx.authority.server(), locations: Nginx.sayWhatArrived, http2: false)
        let record = try await pool.send(Request(.secure(old.httpsPort)))
        #expect(record.error?.kind == .http2Missing)
        #expect(record.lines.isEmpty)
    }

    @Test func `one exchange after the other`() async throws {
        let (nginx, pool) = try await serverAndPool()
        for number in 0..<5 {
            var request = Request(.secure(nginx.httpsPort), "GET", "/\(number)?a=|b")
            request.fields = [("Authorization", "Bearer \(number)")]
            let record = try await pool.send(request)
            #expect(record.error == nil)
            #expect(record.isHTTP2)
            #expect(record.status.hasPrefix("HTTP/2 200"))
            #expect(record.text.contains("protocol: HTTP/2.0\n"))
            #expect(record.text.contains("request: GET /\(number)?a=|b HTTP/2.0\n"))
            #expect(record.text.contains("authorization: Bearer \(number)\n"))
            #expect(record.text.contains("user-agent: \naccept: \n"))
        }
    }

    @Test func `up and down, with pauses`() async throws {
        let (nginx, pool) = try await serverAndPool(
            locations:
                "location / { dav_methods PUT; create_full_put_path on; root FOLDER; client_body_buffer_size 1m; }")
        let body = (0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 >> 3) }
        for (number, upload) in [Request.Upload.bytes(body), .chunks(body)].enumerated() {
            var put = Request(.secure(nginx.httpsPort), "PUT", "/files/\(number)")
            put.upload = upload
            let record = try await pool.send(put)
            #expect(record.error == nil)
            #expect(record.status.hasPrefix("HTTP/2 201"))
            var get = Request(.secure(nginx.httpsPort), "GET", "/files/\(number)")
            get.pausesEvery = 500_000
            let probe = try await pool.start(get)
            while probe.record.ends == 0 {
                try await probe.resumeBody()
                try await Task.sleep(for: .milliseconds(2))
            }
            #expect(probe.record.error == nil)
            #expect(probe.record.body == body)
            #expect(probe.record.pauses >= 3)
        }
    }

    @Test func `many at once, and cancelling one leaves the others alone`() async throws {
        let (nginx, pool) = try await serverAndPool(
            locations: Nginx.sayWhatArrived + "\nlocation /slow { limit_rate 1k; root FOLDER; }")
        var probes: [Probe] = []
        for number in 0..<30 {
            probes.append(try await pool.start(Request(.secure(nginx.httpsPort), "GET", "/\(number)")))
        }
        for number in [3, 17] { try await probes[number].cancel() }
        for (number, probe) in probes.enumerated() where number != 3 && number != 17 {
            #expect(try await probe.ended().text.contains("request: GET /\(number) HTTP/2.0\n"))
        }
        #expect(try await pool.load() == 0)
    }

    @Test func `a server that ends an idle connection is no trouble`() async throws {
        let (nginx, pool) = try await serverAndPool(locations: Nginx.sayWhatArrived + "\nkeepalive_timeout 100ms;")
        for _ in 0..<3 {
            #expect(try await pool.send(Request(.secure(nginx.httpsPort), "POST")).error == nil)
            try await Task.sleep(for: .milliseconds(250))
        }
        #expect(try await pool.rests())
    }
}
