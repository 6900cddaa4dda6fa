import Foundation
import TestSupport

/// A secret that must never appear.
let accessToken = "access-token-SEKRET-0123456789"
let refreshToken = "refresh-token-SEKRET-0123456789"
let clientSecret = "client-secret-SEKRET-0123456789"
let adminToken = "admin-token-SEKRET-0123456789"

/// A running proxy with an admin port, one client `api` and one upstream `api.test`.
final class AdministeredProxy: Sendable {
    let proxy: RunningProxy
    let tokenEndpoint: TokenEndpoint
    let origin: RecordingOrigin
    let adminPort: UInt16
    let socket: String

    /// - Parameters:
    ///   - admin: further lines of the `admin` section, `client`: of the client.
    ///   - socket: `nil`: one in the test's own folder.
    init(
        _ tokenEndpoint: TokenEndpoint, admin: String = "", client: String = "", upstream: String = "",
        socket: String? = nil, more: String = "", environment: [String: String?] = [:]
    ) async throws {
        self.tokenEndpoint = tokenEndpoint
        origin = try RecordingOrigin()
        proxy = try await RunningProxy(
            to: origin, client: client, upstream: upstream,
            admin: admin + (socket.map { "\nsocket: \($0)" } ?? ""), tokenEndpoint: tokenEndpoint, more: more,
            files: ["secret": clientSecret, "admin-token": adminToken], environment: environment)
        let administration = try await proxy.administration()
        adminPort = administration.port
        self.socket = administration.socket
    }

    /// With a client that gets `accessToken`.
    convenience init(admin: String = "", client: String = "", environment: [String: String?] = [:]) async throws {
        try await self.init(
            TokenEndpoint([.token(accessToken)]), admin: admin, client: client, environment: environment)
    }

    // MARK: Asking it

    func get(_ path: String, _ fields: [(String, String)] = [], host: String? = "localhost") async throws -> RawResponse
    {
        try await send("GET", path, fields, host: host)
    }

    func send(
        _ method: String, _ target: String, _ fields: [(String, String)] = [], host: String? = "localhost"
    ) async throws -> RawResponse {
        var head = "\(method) \(target) HTTP/1.1\r\n"
        if let host { head += "Host: \(host)\r\n" }
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        return try await RawClient.exchange(port: adminPort, head + "Connection: close\r\n\r\n", method: method)
    }

    /// Runs a verb against it.
    func run(_ arguments: String...) async throws -> ChildProcess {
        try await RunningProxy.run(arguments + ["--socket", socket])
    }

    /// Waits until its client has a token.
    func ready() async throws {
        try await eventually("a token: \(proxy.log)") {
            try await self.get("/status").text.contains(#""state": "ready""#)
        }
    }

    /// Waits until the readiness probe says yes.
    func answersReady() async throws {
        try await eventually("readiness: \(proxy.log)") { try await self.get("/readyz").status == 200 }
    }
}

/// The names of a process's threads.
func threads(of pid: Int32) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task").compactMap {
        try? String(contentsOfFile: "/proc/\(pid)/task/\($0)/comm", encoding: .utf8)
    }
}
