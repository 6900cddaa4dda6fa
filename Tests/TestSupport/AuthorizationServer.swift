import Foundation

/// An authorization server and an API that check requests by third-party libraries: joserfc and authlib. See
/// `Fixtures/oauth_server`.
public final class AuthorizationServer: Sendable {
    /// Kind of requests that the server checks.
    public enum Judge: Sendable {
        /// Grants that present an assertion, a token or a code.
        /// - keys: JWK set of the accepted assertions' issuers.
        case grants(keys: String = #"{"keys": []}"#)
        /// DPoP, at the token endpoint and at the API.
        /// - life: lifetime of access tokens in seconds.
        /// - refresh: whether to issue refresh tokens.
        case dpop(life: Int = 60, refresh: Bool = false)
        /// A client's signed assertions.
        /// - key: the client's public JWK.
        /// - audience: `endpoint` or `issuer`.
        case assertions(client: String, key: String, audience: String)

        fileprivate var name: String {
            switch self {
            case .grants: "grants"
            case .dpop: "dpop"
            case .assertions: "assertions"
            }
        }

        fileprivate var settings: String {
            switch self {
            case .grants(let keys): #"{"keys": \#(keys)}"#
            case .dpop(let life, let refresh): #"{"life": \#(life), "refresh": \#(refresh)}"#
            case .assertions(let client, let key, let audience):
                #"{"client": "\#(client)", "key": \#(key), "audience": "\#(audience)"}"#
            }
        }
    }

    /// The judge's findings about one request. `asked` has those of `grants`.
    public struct Finding: Decodable, Sendable {
        /// `token` or `api`.
        public var at: String
        /// `issued`, `served`, `use_dpop_nonce`, or the kind of refusal.
        public var result: String
        public var why: String?
        public var grant: String?
        /// The thumbprint of the proof's key.
        public var key: String?
        public var method: String?
        public var bytes: Int?
    }

    public let port: UInt16
    public var url: String { "http://127.0.0.1:\(port)" }
    public var tokenEndpoint: String { "\(url)/token" }

    private let child: ChildProcess
    private let folder: TemporaryDirectory

    public init(_ judge: Judge) async throws {
        let folder = try TemporaryDirectory()
        self.folder = folder
        try folder.write(judge.settings, to: "settings.json")
        child = try ChildProcess(
            [try Repository.python(), Repository.fixture("oauth_server/server.py"), judge.name, folder.path],
            environment: ["PYTHONDONTWRITEBYTECODE": "1"])
        port = try await child.printedPort()
    }

    deinit { child.kill() }

    private func lines() -> [Data] {
        let text = (try? folder.read("log.jsonl")) ?? ""
        return text.split(separator: "\n").map { Data($0.utf8) }
    }

    /// The judge's findings about all requests so far, or those to one endpoint.
    public func findings(at endpoint: String? = nil) throws -> [Finding] {
        try lines().map { try JSONDecoder().decode(Finding.self, from: $0) }.filter {
            endpoint == nil || $0.at == endpoint
        }
    }

    /// Token requests to `grants`: form parameters, and `header` and `claims` of good assertions.
    public func asked() throws -> [[String: Any]] {
        try lines().compactMap { try JSONSerialization.jsonObject(with: $0) as? [String: Any] }
    }

    /// Makes all issued tokens invalid.
    public func revokeTokens() async throws {
        _ = try await RawClient.exchange(
            port: port, "POST /test/revoke HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    }

    /// The server's output, for a failure's message.
    public var log: String { child.transcript }
}
