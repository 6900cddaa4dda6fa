import Cryptography
import Foundation
import Reactor
import TLSServer
import TestSupport

/// Certificates for the hosts `one.test` and `two.test`, made once.
struct Hosts: Sendable {
    let authority: PrivateCA
    let one: TLSServerContext
    let two: TLSServerContext
    let oneCertificate: [UInt8]

    private static let made = Task { try await Hosts() }

    static func make() async throws -> Hosts { try await made.value }

    private init() async throws {
        authority = try await PrivateCA()
        let first = try await authority.server(["DNS:one.test", "DNS:localhost", "IP:127.0.0.1"])
        oneCertificate = try Self.der(first.certificateFile)
        one = try Self.context(first, session: "one.test")
        two = try Self.context(try await authority.server(["DNS:two.test"]), session: "two.test")
    }

    static func context(
        _ certificate: PrivateCA.Certificate, session: String, clients: ClientVerification? = nil
    ) throws -> TLSServerContext {
        try TLSServerContext(
            certificates: [try der(certificate.certificateFile)], key: try key(certificate.keyFile),
            session: Array(session.utf8), clients: clients)
    }

    /// Those without a name get `one`.
    func context(_ name: String?) -> TLSServerContext? {
        switch name {
        case nil, "one.test", "localhost": one
        case "two.test": two
        default: nil
        }
    }

    static func key(_ file: String) throws -> SigningKey {
        try SigningKey(text: SecretBytes([UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))))
    }

    /// The first certificate of a PEM file.
    static func der(_ file: String) throws -> [UInt8] {
        let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n")
        let body = lines.drop { $0 != "-----BEGIN CERTIFICATE-----" }.dropFirst().prefix { !$0.hasPrefix("-----") }
        guard let data = Data(base64Encoded: body.joined()) else { throw TestFailure("no certificate in \(file)") }
        return [UInt8](data)
    }
}

/// A conversation in memory, with a loop of its own.
final class MemoryTalk: Sendable {
    let loop: EventLoop
    private let bound: LoopBound<Conversation>

    init(_ make: @escaping @Sendable (EventLoop) throws -> Conversation) async throws {
        let loop = try EventLoop.start(name: "talk")
        self.loop = loop
        bound = try await loop.run { LoopBound(try make(loop), on: loop) }
    }

    deinit { loop.stop() }

    @discardableResult
    func now<Value: Sendable>(_ body: @escaping @Sendable (Conversation) throws -> Value) async throws -> Value {
        try await loop.run { [bound] in try body(bound.value) }
    }

    /// Lets some turns of the loop pass, without any event.
    func turns(_ count: Int) async throws { for _ in 0..<count { try await now { _ in } } }

    /// Moves bytes, a step in each turn, until `isDone`.
    func go(
        _ what: String, steps: Int = 20_000, until isDone: @escaping @Sendable (Conversation) -> Bool
    ) async throws {
        for _ in 0..<steps {
            let done = try await now { talk in
                if isDone(talk) { return true }
                talk.step()
                return false
            }
            if done { return }
        }
        throw TestFailure("not in \(steps) steps: \(what)")
    }
}
