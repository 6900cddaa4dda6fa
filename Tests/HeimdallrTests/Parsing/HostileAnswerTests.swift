import TestSupport
import Testing

@testable import Heimdallr

@Suite("what a token answer says of itself is kept only where it does no harm", .timeLimit(.minutes(1)))
struct HostileAnswerTests {
    private static let secret = "s3cr3t/0123456789=abc"

    private func client(_ endpoint: TokenEndpoint, asking scope: [String] = []) throws -> Heimdallr {
        let credentials = OAuthClientSecretCredentials(identifier: "billing", secret: Secret(Self.secret))
        return try makeClient(endpoint, credentials: credentials) { $0.scope = scope }
    }

    private func scope(_ json: String, asking scope: [String] = []) async throws -> [String] {
        let endpoint = try TokenEndpoint([
            .token("TOKEN-abcdefgh", refreshToken: "REFRESH-abcdefgh", extra: "\"scope\":\(json)")
        ])
        let client = try client(endpoint, asking: scope)
        let token = try await client.accessToken()
        #expect(client.status().scope == token.scope)
        return token.scope
    }

    @Test(arguments: [
        "TOKEN-abcdefgh", "x:TOKEN-abcdefgh:y", "REFRESH-abcdefgh", secret, "s3cr3t%2F0123456789%3Dabc",
        "a\\u001b[31mred", "red\\u202e", "a\\\"b", "a\\\\b", "caf\u{E9}", "a\\u2028b", "\\u007f",
        String(repeating: "a", count: 129),
    ])
    func `a scope that holds a secret, or is none, is left out`(name: String) async throws {
        #expect(try await scope("\"read \(name) write\"") == ["read", "write"])
        #expect(try await scope("[\"read\", \"\(name)\", \"write\"]") == ["read", "write"])
    }

    @Test func `scopes that RFC 6749 allows are kept, in order, once`() async throws {
        let long = String(repeating: "a", count: 128)
        #expect(
            try await scope("\"openid https://api.example.com/x?y=[z] !#~ \(long) openid\"")
                == ["openid", "https://api.example.com/x?y=[z]", "!#~", long])
    }

    @Test func `the scopes of an answer are bounded, and those that were asked for do not count`() async throws {
        let names = (0..<200).map { "n\($0)" }
        let asked = (0..<100).map { "asked\($0)" }
        let kept = try await scope("\"\((names + asked).joined(separator: " "))\"", asking: asked)
        #expect(kept == names.prefix(64) + asked)
        let many = String(repeating: "a ", count: 450_000)
        #expect(try await scope("\"\(many)\"") == ["a"])
    }

    @Test func `a token_type that is the client's secret is not shown`() async throws {
        for type in [Self.secret, "x-\(Self.secret)", "s3cr3t%2f0123456789%3dabc"] {
            let endpoint = try TokenEndpoint([.token("TOKEN-abcdefgh", type: type)])
            let error = try await client(endpoint).refusal(waiting: .seconds(10))
            #expect("\(error)".contains("<redacted>"), "\(error)")
            #expect(!"\(error)".contains("0123456789"), "\(error)")
        }
    }
}
