/// A third-party MCP server with authorization: see `Fixtures/mcp_server.py`.
public final class MCPServer: Sendable {
    public enum Kind: String, Sendable, CaseIterable { case fastmcp, mcp }

    public let port: UInt16
    public var url: String { "http://127.0.0.1:\(port)" }
    private let child: ChildProcess

    /// - Parameter tokenSeconds: lifetime of access tokens.
    public init(_ kind: Kind, tokenSeconds: Int = 300) async throws {
        let child = try ChildProcess(
            [try Repository.python(), Repository.fixture("mcp_server.py"), kind.rawValue, "\(tokenSeconds)"],
            environment: ["http_proxy": nil, "https_proxy": nil, "PYTHONDONTWRITEBYTECODE": "1"])
        self.child = child
        port = try await eventually("the MCP server's port", within: .seconds(60)) {
            if child.ending != nil { throw TestFailure(child.transcript) }
            return child.output.split(separator: "\n").first.flatMap { UInt16($0) }
        }
        let url = "http://127.0.0.1:\(port)/test/clients"
        _ = try await eventually("the MCP server", within: .seconds(60)) {
            try await ChildProcess.run(["curl", "-sf", "--noproxy", "*", url]).ending == .exited(0) ? true : nil
        }
    }

    deinit { child.kill() }

    /// Number of clients that have registered.
    public func registrations() async throws -> Int {
        let asked = try await ChildProcess.run(["curl", "-sf", "--noproxy", "*", "\(url)/test/clients"])
        guard let count = Int(asked.output) else { throw TestFailure(asked.transcript) }
        return count
    }

    /// Makes the server forget its clients, as a restart without a database would.
    public func forgetClients() async throws {
        let asked = try await ChildProcess.run([
            "curl", "-sf", "--noproxy", "*", "-X", "DELETE", "\(url)/test/clients",
        ])
        guard asked.output == "0" else { throw TestFailure(asked.transcript) }
    }

    /// The server's output, for a failure's message.
    public var log: String { child.transcript }
}
