import Foundation

/// A collector of spans that reads requests by OpenTelemetry's schema: see `Fixtures/collector.py`.
public final class SpanCollector: Sendable {
    /// One request's spans, and the status of its answer.
    public struct Export: Decodable, Sendable {
        public var path: String
        public var behaviour: String
        /// Time of a monotonic clock in seconds.
        public var time: Double
        public var bytes: Int
        /// Number of fields that the schema does not know.
        public var unknown: Int
        /// Names in lower case.
        public var fields: [String: String]
        public var spans: [Span]
    }

    /// IDs in hexadecimal digits; values of attributes as text.
    public struct Span: Decodable, Sendable {
        public var resource: [String: String]
        public var scope: String
        public var version: String
        public var trace: String
        public var span: String
        public var parent: String
        public var state: String
        public var name: String
        public var kind: String
        public var start: UInt64
        public var end: UInt64
        public var attributes: [String: String]
        public var flags: UInt32
        public var status: String
        public var events: [Event]

        public func event(_ name: String) -> Event? { events.first { $0.name == name } }
    }

    public struct Event: Decodable, Sendable {
        public var name: String
        public var time: UInt64
        public var attributes: [String: String]
    }

    public let port: UInt16
    public let process: ChildProcess
    public let authority: PrivateCA?
    public var url: String { "\(authority == nil ? "http://127.0.0.1" : "https://localhost"):\(port)" }

    /// - Parameters:
    ///   - script: one behaviour for each request: `status:503:1`, `partial:2`, `slow`, …. Later requests succeed.
    ///   - isSecure: whether to use TLS, with a certificate of `authority`.
    public init(_ script: [String] = [], isSecure: Bool = false) async throws {
        var files: [String] = []
        if isSecure {
            let authority = try await PrivateCA()
            let certificate = try await authority.server()
            files = [certificate.certificateFile, certificate.keyFile]
            self.authority = authority
        } else {
            authority = nil
        }
        process = try ChildProcess(
            [try Repository.python(), Repository.fixture("collector.py")] + files + ["--"] + script,
            environment: ["PYTHONDONTWRITEBYTECODE": "1"])
        port = try await process.printedPort()
    }

    deinit { process.kill() }

    public var exports: [Export] {
        // The last line may be cut.
        process.output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
            .compactMap { try? JSONDecoder().decode(Export.self, from: Data($0.utf8)) }
    }

    /// Spans that the collector accepted.
    public var spans: [Span] {
        exports.filter { $0.behaviour == "ok" || $0.behaviour.hasPrefix("partial") }.flatMap(\.spans)
    }

    /// Waits for `count` spans. Throws `TestFailure` with the collector's output when too few arrive.
    public func spans(_ count: Int, within limit: Duration = .seconds(30)) async throws -> [Span] {
        do {
            return try await eventually("\(count) spans", within: limit) {
                let spans = spans
                return spans.count >= count ? spans : nil
            }
        } catch {
            throw TestFailure("\(error); \(process.transcript)")
        }
    }
}
