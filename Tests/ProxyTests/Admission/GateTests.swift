import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import Reactor
import Testing

@testable import Proxy

/// Whatever a request does wrong, the first rule that it breaks answers.
@Suite("a request is judged in one order, in one place") struct GateTests {
    private static let settings = """
        proxy:
          max_body_bytes: 10B
          connect: tunnel
          tunnels: [db.example.com:5432]
        clients:
          crm: {token_endpoint: "https://idp.example.com/token", client_id: a, client_secret: s}
        upstreams:
          - host: api.example.com
            methods: [GET, OPTIONS, POST]
            client: crm
            on_existing: reject
          - host: "*.wild.example.com"
          - host: base.example.com
            url: https://base.example.com/tenant
            client: crm
            inject: {query: access_token}
            allow_deprecated: true
        """

    private func gate() throws -> Gate {
        let (configuration, _) = try Configuration.parse(yaml: Self.settings, file: "test.yaml", environment: [:])
        return Gate(
            configuration, routes: RouteTable(configuration.upstreams), placeholders: PlaceholderGuard(configuration))
    }

    private func judge(
        _ gate: inout Gate, _ lines: [String], bytesBehind: Bool = false
    ) throws -> (Result<Admission, Problem>, Admitted) {
        let bytes = Array((lines + ["", ""]).joined(separator: "\r\n").utf8)
        var head = RequestHead()
        guard case .complete = try head.parse(bytes.span, limits: HeadLimits(maxBytes: 65536, maxFields: 256)) else {
            throw Incomplete()
        }
        let situation = Gate.Situation(
            role: .forward(.tcp(host: "127.0.0.1", port: 8080)), hasBytesAfterHead: bytesBehind)
        var admitted = Admitted()
        do throws(Problem) {
            return (.success(try gate.admit(head, bytes.span, situation, &admitted)), admitted)
        } catch {
            return (.failure(error), admitted)
        }
    }

    private struct Incomplete: Error {}

    /// Each step takes away what the step before complained of.
    @Test func `the first rule that a request breaks answers it`() throws {
        var gate = try gate()
        let via = "Via: " + Array(repeating: "1.1 heimdallr-proxy", count: 8).joined(separator: ", ")
        let all = [
            "Host: nobody.example.com", "Content-Length: 11", via, "Authorization: Bearer own",
            "X-HTTP-Method-Override: DELETE",
        ]
        func answer(_ target: String, without: Int...) throws -> Result<Admission, Problem> {
            let fields = all.indices.filter { !without.contains($0) }.map { all[$0] }
            return try judge(&gate, ["POST http://\(target)/ HTTP/1.1"] + fields).0
        }
        #expect(try answer("nobody.example.com") == .failure(Problem(.bodyTooLarge)))
        #expect(try answer("nobody.example.com", without: 1) == .failure(Problem(.circle)))
        let unknown = Problem.unknownHost(try Authority(parsing: "nobody.example.com"), .http, near: nil)
        #expect(try answer("nobody.example.com", without: 1, 2) == .failure(unknown))
        #expect(try answer("api.example.com", without: 1, 2) == .failure(Problem(.methodOverride)))
        #expect(try answer("api.example.com", without: 1, 2, 4) == .failure(Problem(.ownCredential)))
        #expect(try answer("api.example.com", without: 1, 2, 3, 4) == .success(.forward))
    }

    @Test func `Max-Forwards comes before the upgrade, and that before the credential`() throws {
        var gate = try gate()
        let fields = [
            "Host: api.example.com", "Connection: upgrade", "Upgrade: websocket", "Authorization: Bearer own",
        ]
        let line = "OPTIONS http://api.example.com/x HTTP/1.1"
        #expect(try judge(&gate, [line, "Max-Forwards: 0"] + fields, bytesBehind: true).0 == .success(.reply))
        #expect(try judge(&gate, [line, "Max-Forwards: x"] + fields).0 == .failure(Problem(.badMaxForwards)))
        let counted = [line, "Max-Forwards: 3"] + fields
        #expect(try judge(&gate, counted, bytesBehind: true).0 == .failure(Problem(.bytesBeforeUpgrade)))
        #expect(try judge(&gate, counted).0 == .failure(Problem(.ownCredential)))
        let (admission, admitted) = try judge(&gate, Array(counted.dropLast()))
        #expect(admission == .success(.forward))
        #expect(admitted.maxForwards == 2)
        #expect(admitted.upgrade?.value == Array("websocket".utf8))
        #expect(admitted.isLast)
        #expect(admitted.credential == .put(EntrySet(index: 0)))
    }

    @Test func `a request for a host of a wildcard goes on by https`() throws {
        var gate = try gate()
        for port in ["", ":80", ":443"] {
            let host = "a.wild.example.com" + port
            let (admission, admitted) = try judge(&gate, ["GET http://\(host)/ HTTP/1.1", "Host: \(host)"])
            #expect(admission == .success(.forward))
            #expect(admitted.destination?.scheme == .https)
            #expect(admitted.destination?.origin.port == 443)
        }
    }
}
