/// Third-party authorization servers with paths in their issuers, each with an API: see `Fixtures/issuer_server.py`.
public final class PathIssuers: Sendable {
    public enum Kind: String, Sendable, CaseIterable { case authlib, idpyoidc }
    /// Address of the issuer's metadata: RFC 8414, OpenID Connect inserted, OpenID Connect appended.
    public enum Form: String, Sendable, CaseIterable { case oauth, inserted, appended }

    public let url: String
    private let child: ChildProcess

    /// - Parameter documents: folder of client ID metadata documents and keys. Their clients are then the only ones.
    public init(_ kind: Kind, tokenSeconds: Int, documents: String? = nil) async throws {
        let child = try ChildProcess(
            [try Repository.python(), Repository.fixture("issuer_server.py"), kind.rawValue, "\(tokenSeconds)"]
                + (documents.map { [$0] } ?? []),
            environment: ["http_proxy": nil, "https_proxy": nil, "PYTHONDONTWRITEBYTECODE": "1"])
        self.child = child
        let port = try await eventually("the authorization servers' port", within: .seconds(60)) {
            if child.ending != nil { throw TestFailure(child.transcript) }
            return child.output.split(separator: "\n").first.flatMap { UInt16($0) }
        }
        url = "http://127.0.0.1:\(port)"
    }

    deinit { child.kill() }

    public func api(_ form: Form) -> String { "\(url)/api/\(form)" }
    public func issuer(_ form: Form) -> String { "\(url)/\(form)/tenant" }

    /// Paths of all requests so far.
    public func targets() async throws -> [String] {
        try await ChildProcess.run(["curl", "-sf", "--noproxy", "*", "\(url)/test/targets"]).output
            .split(separator: "\n").map(String.init)
    }
}
