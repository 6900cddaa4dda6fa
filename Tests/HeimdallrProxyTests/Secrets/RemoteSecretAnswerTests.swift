import Configuration
import Heimdallr
import Testing

@testable import HeimdallrProxy

@Suite("answers of servers that hand out secrets") struct RemoteSecretAnswerTests {
    private struct Scripted: HeimdallrHTTPClient {
        let answer: HeimdallrHTTPResponse
        func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse { answer }
    }

    private func server(_ status: Int, _ body: [UInt8], _ fields: [String: String] = [:]) -> RemoteServer {
        let answer = HeimdallrHTTPResponse(
            status: status, headers: fields.map { .init(name: $0.key, value: $0.value) }, body: body)
        return RemoteServer(name: "server") { Scripted(answer: answer) }
    }

    private static let token: [UInt8] = [0x0A, 8, 0x0A, 1, 0x69, 0x12, 3, 0x61, 0x2E, 0x62]

    @Test func `a call of gRPC gives the token behind fields that are not known`() async throws {
        let messages = [0x10, 5] + [0x1D, 1, 2, 3, 4] + [0x21, 1, 2, 3, 4, 5, 6, 7, 8] + Self.token
        let api = WorkloadAPI(
            settings: SPIFFESettings(socket: "/a", audience: "x"),
            server: server(200, [0, 0, 0, 0, UInt8(messages.count)] + messages, ["grpc-status": "0"]))
        #expect(try await api.secret().revealed == "a.b")
    }

    private static let malformed: [[UInt8]] = [
        [], [0], [0, 0, 0, 0, 0], [1, 0, 0, 0, 10] + token, [0, 0, 0, 0, 9] + token.dropLast(),
        [0, 0, 0, 0, 6, 0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F], [0, 0, 0, 0, 2, 0x0A, 0x80],
        [0, 0, 0, 0, 12] + [UInt8](repeating: 0xFF, count: 12), [0, 0, 0, 0, 1, 0x0B], [0, 0, 0, 0, 2, 0x0A, 2],
    ]

    @Test(arguments: malformed)
    func `a malformed or compressed message of the agent is an error and no trap`(body: [UInt8]) async {
        let api = WorkloadAPI(
            settings: SPIFFESettings(socket: "/a", audience: "x"), server: server(200, body, ["grpc-status": "0"]))
        await #expect(throws: SecretProviderError.self) { try await api.secret() }
    }

    @Test(arguments: [
        "", "null", "[]", "{}", #"{"data":null}"#, #"{"data":{"data":null}}"#, #"{"data":{"data":[]}}"#,
        #"{"data":{"data":{"f":7}}}"#, #"{"data":{"data":{"f":""}}}"#, #"{"data":{"f":"x"}}"#,
        #"{"data":{"data":{"f":"x"}"#,
    ])
    func `an answer of Vault without the field's text is an error that names the place`(body: String) async {
        let settings = VaultSettings(
            url: "https://v.test", path: "p", field: "f", login: .token(.literal("t")), refresh: .seconds(1))
        let vault = VaultSecret(settings: settings, identity: Secret("t"), server: server(200, Array(body.utf8)))
        await #expect {
            try await vault.secret()
        } throws: { error in
            "\(error)" == "server: secret/p has no text `f`"
        }
    }
}
