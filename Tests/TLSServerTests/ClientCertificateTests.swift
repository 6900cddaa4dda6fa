import CLibssl
import Cryptography
import TLSServer
import TestSupport
import Testing

@Suite("A client's certificate is verified and read", .timeLimit(.minutes(1)))
struct ClientCertificateTests {
    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a verified certificate is read, and its session is never resumed`(version: Int32) async throws {
        let authority = try await PrivateCA()
        let context = try await context(for: authority, isRequired: true)
        let worker = try await authority.client("worker")
        let first = try await talk(context) {
            try MemoryClient(version: version, identity: (worker.certificateFile, worker.keyFile))
        }
        try await first.go("the handshake") { $0.ends.count == 1 && $0.client.isDone }
        let session = try await first.now { talk in
            for _ in 0..<3 { talk.step() }
            talk.client.end()
            return try #require(talk.client.session)
        }
        #expect(!session.isResumable)
        let again = try await talk(context) {
            try MemoryClient(version: version, session: session, identity: (worker.certificateFile, worker.keyFile))
        }
        try await again.go("the handshake") { $0.ends.count == 1 && $0.client.isDone }
        #expect(try await again.now { !$0.client.isResumed })
        for talk in [first, again] {
            let shown = try await talk.now { $0.stream.clientCertificate }
            #expect(shown?.subject == "CN=worker" && shown?.names == ["DNS:worker"])
        }
    }

    @Test(arguments: [TLS1_2_VERSION, TLS1_3_VERSION])
    func `a session of an unverified client is not resumed where clients are verified`(version: Int32) async throws {
        let open = try Hosts.context(try await PrivateCA().server(), session: "one.test")
        let first = try await talk(open) { try MemoryClient(version: version) }
        try await first.go("the handshake") { $0.ends.count == 1 && $0.client.isDone }
        let session = try await first.now { talk in
            for _ in 0..<3 { talk.step() }
            talk.client.end()
            return try #require(talk.client.session)
        }
        #expect(session.isResumable)
        let verifying = try await context(for: PrivateCA(), isRequired: false)
        let again = try await talk(verifying) { try MemoryClient(version: version, session: session) }
        try await again.go("the handshake") { $0.ends.count == 1 && $0.client.isDone }
        #expect(try await again.now { !$0.client.isResumed && $0.stream.clientCertificate == nil })
    }

    @Test(arguments: [90, 9]) func `a certificate ends with the first end in its chain`(days: Int) async throws {
        let authority = try await PrivateCA(days: 30)
        let context = try await context(for: authority, isRequired: true)
        let worker = try await authority.client("worker", days: days)
        let first = try await talk(context) {
            try MemoryClient(identity: (worker.certificateFile, worker.keyFile))
        }
        try await first.go("the handshake") { $0.ends.count == 1 && $0.client.isDone }
        let file = days > 30 ? authority.certificateFile : worker.certificateFile
        let end = try X509Certificate(der: try Hosts.der(file)).notAfter
        #expect(try await first.now { $0.stream.clientCertificate?.end } == end)
    }

    @Test func `a client without a certificate, or with another authority's, is told apart`() async throws {
        let authority = try await PrivateCA()
        let strict = try await context(for: authority, isRequired: true)
        let open = try await context(for: authority, isRequired: false)
        let foreign = try await PrivateCA(commonName: "another").client()
        #expect(try await end(strict, nil) == .refused(TLSAlert(number: 116)))
        #expect(try await end(strict, foreign) == .refused(TLSAlert(number: 48)))
        #expect(try await end(open, foreign) == .refused(TLSAlert(number: 48)))
        guard case .done = try await end(open, nil) else {
            Issue.record("refused")
            return
        }
    }

    @Test func `names with hidden bytes are left out`() async throws {
        let authority = try await PrivateCA()
        let folder = try TemporaryDirectory()
        let (key, file) = (folder.path(of: "key"), folder.path(of: "certificate"))
        // A self-signed one, which is its own authority. The first name would look like two.
        try await ChildProcess.output(of: [
            "openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
            "/O=A, B/CN=w\u{e4}", "-utf8", "-addext",
            "subjectAltName=email:a@b.test,DNS:a b.test,IP:127.0.0.1,URI:spiffe://b.test/w", "-keyout", key, "-out",
            file,
        ])
        let context = try Hosts.context(
            try await authority.server(), session: "",
            clients: ClientVerification(anchors: [try Hosts.der(file)], isRequired: true))
        let talk = try await talk(context) { try MemoryClient(identity: (file, key)) }
        try await talk.go("the handshake") { $0.ends.count == 1 && $0.client.isDone }
        let shown = try await talk.now { $0.stream.clientCertificate }
        #expect(shown?.subject == "CN=w\\C3\\A4,O=A\\, B")
        #expect(shown?.names == ["email:a@b.test", "URI:spiffe://b.test/w"])
    }

    private func context(for authority: PrivateCA, isRequired: Bool) async throws -> TLSServerContext {
        try Hosts.context(
            try await authority.server(), session: "one.test",
            clients: ClientVerification(
                anchors: [try Hosts.der(authority.certificateFile)], isRequired: isRequired))
    }

    private func talk(
        _ context: TLSServerContext, _ client: @escaping @Sendable () throws -> MemoryClient
    ) async throws -> MemoryTalk {
        try await MemoryTalk { try Conversation(client(), on: $0, contexts: { _ in context }) }
    }

    private func end(_ context: TLSServerContext, _ identity: PrivateCA.Certificate?) async throws -> HandshakeEnd? {
        let talk = try await talk(context) {
            try MemoryClient(identity: identity.map { ($0.certificateFile, $0.keyFile) })
        }
        try await talk.go("the end") { !$0.ends.isEmpty }
        return try await talk.now { $0.ends.first }
    }
}
