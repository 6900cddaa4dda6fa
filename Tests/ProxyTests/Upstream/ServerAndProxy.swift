import TestSupport

/// A server of `Fixtures`, and the proxy in front of it as `two.test`.
struct ServerAndProxy {
    let server: ChildProcess
    let port: UInt16
    let proxy: ProxyInProcess

    /// - Parameters:
    ///   - upstream: further lines of the upstream.
    ///   - endpoint: the client's token endpoint; `nil`: one that answers at once.
    init(
        _ fixture: String, _ arguments: [String] = [], upstream: String = "http2: prior-knowledge",
        authority: PrivateCA? = nil, endpoint: TokenEndpoint? = nil
    ) async throws {
        let certificate = try await authority?.server()
        let files = certificate.map { [$0.certificateFile, $0.keyFile] } ?? []
        server = try ChildProcess([try Repository.python(), Repository.fixture(fixture)] + arguments + files)
        port = try await server.printedPort()
        let url = certificate == nil ? "http://127.0.0.1:\(port)" : "https://localhost:\(port)"
        let tls = authority.map { "tls: {ca_file: \($0.certificateFile)}" } ?? ""
        proxy = try await ProxyInProcess(
            more: "- host: two.test\n  url: \(url)\n  client: api\n  allow_plaintext: true\n"
                + "\(upstream)\n\(tls)".indented(2), endpoint: endpoint,
            peer: [server, certificate] as [(any Sendable)?])
    }

    /// Number of lines that the server has printed.
    func count(_ line: String) -> Int { server.output.split(separator: "\n").count { $0 == line } }
}
