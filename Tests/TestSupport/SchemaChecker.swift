import Foundation
import Synchronization

/// PyPI's `jsonschema`, which reads YAML as editors do. One program serves all tests of a process, one at a time.
public final class SchemaChecker: Sendable {
    private struct Pipes: ~Copyable {
        var process: Process
        var input: FileHandle
        var output: FileHandle
        var rest: [UInt8] = []
    }

    private let pipes: Mutex<Pipes>

    /// - Throws: if `schema` is not a JSON Schema.
    public init(schema: String) throws {
        let process = Process()
        let (input, output) = (Pipe(), Pipe())
        process.executableURL = URL(fileURLWithPath: try Repository.python())
        process.arguments = [Repository.fixture("check_schema.py")]
        process.standardInput = input
        process.standardOutput = output
        try process.run()
        pipes = Mutex(
            Pipes(process: process, input: input.fileHandleForWriting, output: output.fileHandleForReading))
        let ready = try pipes.withLock { try Self.ask(schema, &$0) }
        guard ready == "\"ready\"" else { throw TestFailure("not a JSON Schema: \(ready)") }
    }

    deinit { pipes.withLock { $0.process.terminate() } }

    /// Returns the violations of the schema in this text.
    public func problems(_ yaml: String) throws -> [String] {
        let question = String(decoding: try JSONEncoder().encode(["yaml": yaml]), as: UTF8.self)
        let answer = try pipes.withLock { try Self.ask(question, &$0) }
        return try JSONDecoder().decode([String].self, from: Data(answer.utf8))
    }

    private static func ask(_ line: String, _ pipes: inout Pipes) throws -> String {
        try pipes.input.write(contentsOf: Data((line + "\n").utf8))
        while true {
            if let end = pipes.rest.firstIndex(of: 0x0A) {
                let answer = String(decoding: pipes.rest[..<end], as: UTF8.self)
                pipes.rest.removeFirst(end + 1)
                return answer
            }
            let piece = pipes.output.availableData
            guard !piece.isEmpty else { throw TestFailure("check_schema.py has ended") }
            pipes.rest += piece
        }
    }
}
