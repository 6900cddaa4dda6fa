import Foundation
import TestSupport
import Testing

/// RFC 9449, against a server that checks each proof with another library and takes none twice.
@Suite("Tokens that are bound to a key")
struct DPoPTests {
    private static func configuration(_ server: AuthorizationServer, _ client: String, store: String = "") -> String {
        """
        proxy: {listen: "127.0.0.1:0"}
        \(store)
        clients:
          api:
            token_endpoint: \(server.tokenEndpoint)
            client_id: a
            client_secret: {file: FOLDER/secret}
            allow_plaintext: true
            \(client)
        upstreams:
          - {host: api.test, url: "\(server.url)", client: api, allow_plaintext: true}
        """
    }

    private static func proxy(
        _ server: AuthorizationServer, _ client: String = "dpop: true", store: String = "",
        files: [String: String] = [:]
    ) async throws -> RunningProxy {
        try await RunningProxy(
            configuration(server, client, store: store), files: files.merging(["secret": "s3cret"]) { mine, _ in mine })
    }

    @Test("each request has its own proof, and the nonces of both servers are learned")
    func proofs() async throws {
        let server = try await AuthorizationServer(.dpop())
        let proxy = try await Self.proxy(server)
        for _ in 0..<3 {
            #expect(try await proxy.get("http://api.test/items?page=2").status == 200)
            #expect(try await proxy.send("POST", "http://api.test/items", body: "abc").status == 200)
        }
        #expect(try server.findings(at: "token").map(\.result) == ["use_dpop_nonce", "issued"])
        let seen = try server.findings(at: "api")
        #expect(seen.map(\.result) == ["use_dpop_nonce"] + Array(repeating: "served", count: 6))
        #expect(seen.compactMap(\.bytes) == [0, 3, 0, 3, 0, 3])
    }

    @Test("a nonce that is out of date costs the request one more try, whatever its method")
    func rotation() async throws {
        let server = try await AuthorizationServer(.dpop())
        let proxy = try await Self.proxy(server)
        #expect(try await proxy.get("http://api.test/rotate").status == 200)
        #expect(try await proxy.send("POST", "http://api.test/items", body: "a body").status == 200)
        let seen = try server.findings(at: "api")
        #expect(seen.map(\.result) == ["use_dpop_nonce", "served", "use_dpop_nonce", "served"])
        #expect(seen.last?.bytes == 6)
        #expect(try server.findings(at: "token").count == 2)
    }

    @Test("a proof that the program sends does not go on")
    func own() async throws {
        let server = try await AuthorizationServer(.dpop())
        let proxy = try await Self.proxy(server)
        let answer = try await proxy.get("http://api.test/", fields: [("DPoP", "mine"), ("Authorization", "DPoP x")])
        #expect(answer.status == 200)
        #expect(try server.findings(at: "api").allSatisfy { $0.result != "refused" })
    }

    @Test("the key of dpop lies in the record: after a restart it serves and refreshes the token")
    func record() async throws {
        let server = try await AuthorizationServer(.dpop(life: 8, refresh: true))
        let folder = try TemporaryDirectory()
        try folder.write(Data((0..<32).map { _ in UInt8.random(in: 0...255) }).base64EncodedString(), to: "key")
        let store = "store: {kind: file, directory: \(folder.path)/tokens, key: {file: \(folder.path)/key}}"
        let first = try await Self.proxy(server, store: store)
        #expect(try await first.get("http://api.test/").status == 200)
        _ = try await first.terminate()
        let second = try await Self.proxy(server, store: store)
        #expect(try await second.get("http://api.test/").status == 200)
        #expect(try server.findings(at: "token").filter { $0.result == "issued" }.count == 1)
        _ = try await eventually("the token is refreshed", within: .seconds(20)) {
            _ = try await second.get("http://api.test/")
            return try server.findings(at: "token").contains { $0.grant == "refresh_token" && $0.result == "issued" }
                ? true : nil
        }
        #expect(Set(try server.findings(at: "token").compactMap(\.key)).count == 1)
        #expect(try server.findings().allSatisfy { $0.result != "refused" && $0.result != "invalid_grant" })
    }

    @Test("a stored token that is bound to another key is not used with this one")
    func otherKey() async throws {
        let server = try await AuthorizationServer(.dpop())
        let folder = try TemporaryDirectory()
        try folder.write(Data((0..<32).map { _ in UInt8.random(in: 0...255) }).base64EncodedString(), to: "key")
        let store = "store: {kind: file, directory: \(folder.path)/tokens, key: {file: \(folder.path)/key}}"
        let first = try await Self.proxy(server, store: store)
        #expect(try await first.get("http://api.test/").status == 200)
        _ = try await first.terminate()
        let key = try await ForeignKeys.make("p256")
        let second = try await Self.proxy(
            server, "dpop: {key: {file: FOLDER/key.pem}}", store: store, files: ["key.pem": key])
        #expect(try await second.get("http://api.test/").status == 200)
        let thumbprint = try await ForeignKeys.thumbprint(key)
        #expect(try server.findings(at: "token").compactMap(\.key).last == thumbprint)
        #expect(try server.findings(at: "api").allSatisfy { $0.result != "refused" })
    }

    @Test(
        "a key of dpop from a file is used by its algorithm",
        arguments: [("p256", "ES256"), ("ed25519", "EdDSA"), ("rsa2048", "PS256")])
    func file(kind: String, algorithm: String) async throws {
        let server = try await AuthorizationServer(.dpop())
        let key = try await ForeignKeys.make(kind)
        let proxy = try await Self.proxy(
            server, "dpop: {key: {file: FOLDER/key.pem}, algorithm: \(algorithm)}", files: ["key.pem": key])
        #expect(try await proxy.get("http://api.test/").status == 200)
        let thumbprint = try await ForeignKeys.thumbprint(key)
        #expect(try server.findings(at: "token").compactMap(\.key) == [thumbprint])
    }
}
