import Foundation

/// An authorization server for grants that show something, and the API that it protects at `/api/`; JWTs are judged by
/// joserfc. See `Fixtures/grant_server.py`.
public final class GrantServer: Sendable {
    public let port: UInt16
    public var url: String { "http://127.0.0.1:\(port)" }
    public var tokenEndpoint: String { "\(url)/token" }

    private let child: ChildProcess
    private let directory: TemporaryDirectory

    /// - Parameter keys: a JWK set: whose assertions are taken.
    public init(keys: String = #"{"keys": []}"#) async throws {
        let directory = try TemporaryDirectory()
        self.directory = directory
        try directory.write(keys, to: "keys.json")
        let child = try ChildProcess(
            [try Repository.python(), Repository.fixture("grant_server.py"), directory.path],
            environment: ["PYTHONDONTWRITEBYTECODE": "1"])
        self.child = child
        port = try await eventually("the grant server's port", within: .seconds(60)) {
            if child.ending != nil { throw TestFailure(child.transcript) }
            guard let end = child.output.firstIndex(of: "\n") else { return nil }
            return UInt16(child.output[..<end])
        }
    }

    deinit { child.kill() }

    /// Requests to the token endpoint: form parameters, and `header` and `claims` of good assertions.
    public func asked() async throws -> [[String: Any]] {
        let response = try await RawClient.exchange(port: port, "GET /test/asked HTTP/1.1\r\nHost: x\r\n\r\n")
        guard let list = try JSONSerialization.jsonObject(with: Data(response.body)) as? [[String: Any]] else {
            throw TestFailure(response.text)
        }
        return list
    }

    /// No token that was issued is good any more.
    public func revokeTokens() async throws {
        _ = try await RawClient.exchange(
            port: port, "POST /test/revoke HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    }

    /// Its output, for a failure's message.
    public var log: String { child.transcript }
}
