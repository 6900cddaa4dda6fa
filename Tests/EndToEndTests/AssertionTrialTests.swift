import Foundation
import TestSupport
import Testing

@Suite("doctor finds the form of client assertion that a server takes", .timeLimit(.minutes(3)))
struct AssertionTrialTests {
    /// Header and claims of the client assertion in a form, as JSON.
    private static func assertion(in form: String) -> [String] {
        let name = "client_assertion="
        guard let pair = form.split(separator: "&").first(where: { $0.hasPrefix(name) }) else { return [] }
        return pair.dropFirst(name.count).split(separator: ".").prefix(2).map { part -> String in
            let text = String(part).replacing("-", with: "+").replacing("_", with: "/")
            let padded = text + String(repeating: "=", count: (4 - text.count % 4) % 4)
            return Data(base64Encoded: padded).map { String(decoding: $0, as: UTF8.self) } ?? ""
        }
    }

    /// An issuer that takes assertions with this audience (`issuer` or `token_endpoint`) and this `typ` only.
    private static func issuer(audience: String, typ: String) throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let root = "http://\(request.field("Host") ?? "")"
            let json = [("Content-Type", "application/json")]
            guard request.method == "POST" else {
                return try exchange.respond(
                    200, fields: json, body: #"{"issuer":"\#(root)","token_endpoint":"\#(root)/token"}"#)
            }
            let parts = assertion(in: request.text)
            let wanted = audience == "issuer" ? root : root + "/token"
            guard parts.count == 2, parts[0].contains("\"typ\":\"\(typ)\""), parts[1].contains("\"aud\":\"\(wanted)\"")
            else { return try exchange.respond(401, fields: json, body: #"{"error":"invalid_client"}"#) }
            try exchange.respond(200, fields: json, body: #"{"access_token":"T-SEKRET","token_type":"Bearer"}"#)
        }
    }

    @Test(
        "doctor finds the form of assertion for either form, and asks a server that takes a client once only",
        arguments: [
            ("issuer", "client-authentication+jwt", ""), ("issuer", "JWT", ""),
            (
                "token_endpoint", "JWT",
                ", client_assertion_audience: issuer, client_assertion_typ: client-authentication+jwt"
            ),
        ])
    func forms(audience: String, typ: String, keys: String) async throws {
        let issuer = try Self.issuer(audience: audience, typ: typ)
        let folder = try TemporaryDirectory()
        let key = try folder.write(try await ForeignKeys.make("p256"), to: "key.pem")
        func doctor(_ keys: String) async throws -> ChildProcess {
            let file = try folder.write(
                """
                clients:
                  c: {issuer: "\(issuer.url)", client_id: id, client_key: {file: \(key)}, allow_plaintext: true\(keys)}
                upstreams: [{host: api.test, url: "\(issuer.url)", client: c, allow_plaintext: true}]
                """, to: "config.yaml")
            return try await RunningProxy.run(["doctor", "--config", file])
        }
        let advice = "client_assertion_audience: \(audience) and client_assertion_typ: \(typ)"
        let refused = try await doctor(keys)
        #expect(refused.ending == .exited(1), "\(refused.transcript)")
        #expect(refused.output.contains("invalid_client"), "\(refused.output)")
        #expect(refused.output.contains("what to do: write \(advice): doctor has tried that"), "\(refused.output)")
        let asked = issuer.requests.count { $0.method == "POST" }
        #expect(asked <= 4)
        let good = try await doctor(", client_assertion_audience: \(audience), client_assertion_typ: \(typ)")
        #expect(good.output.contains("the server takes \(advice)"), "\(good.output)")
        #expect(issuer.requests.count { $0.method == "POST" } == asked + 1)
        #expect(!(refused.transcript + good.transcript).contains("SEKRET"))
    }

    @Test("without an issuer doctor tries both types; a server that takes none is told as before")
    func none() async throws {
        let endpoint = try TokenEndpoint([.error("invalid_client", status: 401)])
        let folder = try TemporaryDirectory()
        let key = try folder.write(try await ForeignKeys.make("p256"), to: "key.pem")
        let file = try folder.write(
            """
            clients:
              c: {token_endpoint: "\(endpoint.url)", client_id: id, client_key: {file: \(key)}, allow_plaintext: true}
            upstreams: [{host: api.test, url: "\(endpoint.url)", client: c, allow_plaintext: true}]
            """, to: "config.yaml")
        let run = try await RunningProxy.run(["doctor", "--config", file])
        #expect(run.ending == .exited(1) && run.output.contains("invalid_client"), "\(run.transcript)")
        #expect(!run.output.contains("doctor has tried"))
        let assertions = endpoint.requests.compactMap { $0["client_assertion"] }
        #expect(Set(assertions.map { Self.assertion(in: "client_assertion=\($0)").first }).count == 2)
    }
}
