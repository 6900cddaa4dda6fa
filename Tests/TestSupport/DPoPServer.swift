import Foundation

/// A token endpoint and an API that want DPoP, by another library (`Fixtures/dpop_server.py`).
public final class DPoPServer: Sendable {
    public struct Entry: Decodable, Sendable {
        /// `token` or `api`.
        public var at: String
        /// `issued`, `served`, `use_dpop_nonce`, or the refused request.
        public var result: String
        public var why: String?
        public var grant: String?
        /// The thumbprint of the proof's key.
        public var key: String?
        public var method: String?
        public var bytes: Int?
    }

    private struct Ports: Decodable {
        var token: UInt16
        var api: UInt16
    }

    public let apiPort: UInt16
    private let tokenPort: UInt16
    private let process: ChildProcess
    private let folder: TemporaryDirectory

    public var tokenEndpoint: String { "http://127.0.0.1:\(tokenPort)/token" }
    public var api: String { "http://127.0.0.1:\(apiPort)" }

    /// - Parameters:
    ///   - life: of its access tokens, in seconds.
    ///   - refresh: whether it gives refresh tokens.
    public init(life: Int = 60, refresh: Bool = false) async throws {
        let folder = try TemporaryDirectory()
        let process = try ChildProcess(
            [try Repository.python(), Repository.fixture("dpop_server.py"), folder.path],
            environment: ["LIFE": String(life), "REFRESH": refresh ? "1" : nil])
        let line = try await eventually("the server says its ports") {
            process.output.hasSuffix("\n") ? process.output : nil
        }
        let ports = try JSONDecoder().decode(Ports.self, from: Data(line.utf8))
        tokenPort = ports.token
        apiPort = ports.api
        self.process = process
        self.folder = folder
    }

    /// The requests so far.
    public func entries(at place: String? = nil) throws -> [Entry] {
        let text = (try? String(contentsOfFile: "\(folder.path)/log.jsonl", encoding: .utf8)) ?? ""
        return try text.split(separator: "\n").map { try JSONDecoder().decode(Entry.self, from: Data($0.utf8)) }
            .filter { place == nil || $0.at == place }
    }
}
