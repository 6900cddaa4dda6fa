import Configuration
import Foundation
import TestSupport
import Testing
import WireText

@Suite("the configuration's pages have every key that the reader has, and no other")
struct ReferenceTests {
    private struct Row: Decodable {
        /// As the schema names it: `clients.*.client_id`.
        var path: String
        /// As it is written: `` `10s` ``, `required`, `–`.
        var usual: String

        /// The default, where the row says it as it would be written.
        var literal: String? {
            guard usual.hasPrefix("`"), usual.hasSuffix("`"), usual.count(where: { $0 == "`" }) == 2 else { return nil }
            return String(usual.dropFirst().dropLast())
        }
    }

    private let rows: [Row]
    /// By path; the default, if there is one, as it would be written.
    private var keys: [String: String?] = [:]

    init() async throws {
        let run = try await Self.reference(["--json"])
        rows = try JSONDecoder().decode([Row].self, from: Data(run.output.utf8))
        let schema = try JSONParser.parse(Array(Configuration.schema().text(.compact).utf8))
        collect(schema, "")
        for (name, definition) in Self.members(schema["$defs"]) { collect(definition, name) }
    }

    private static func reference(_ arguments: [String]) async throws -> ChildProcess {
        try await ChildProcess.run(["/usr/bin/env", "python3", Repository.root + "/.ci/reference.py"] + arguments)
    }

    private mutating func collect(_ schema: JSONValue, _ path: String) {
        for (name, key) in Self.members(schema["properties"]) {
            let path = path.isEmpty ? name : "\(path).\(name)"
            keys[path] = .some(Self.text(key["default"]))
            collect(key, path)
        }
        if let items = schema["items"] { collect(items, path) }
        if let values = schema["additionalProperties"] { collect(values, path + ".*") }
        if case .array(let choices)? = schema["anyOf"] { for choice in choices { collect(choice, path) } }
    }

    private static func members(_ value: JSONValue?) -> [String: JSONValue] {
        if case .object(let members)? = value { members } else { [:] }
    }

    private static func text(_ value: JSONValue?) -> String? {
        switch value {
        case .bool(let flag): "\(flag)"
        case .number(let text), .string(let text): text
        default: nil
        }
    }

    @Test("each key of the configuration has its row")
    func everyKey() {
        #expect(Set(keys.keys).subtracting(rows.map(\.path)).sorted() == [], "these keys have no row")
    }

    @Test("each row of the reference has its key")
    func noStrangers() {
        #expect(rows.map(\.path).filter { keys[$0] == nil }.sorted() == [], "the reader knows no such keys")
        #expect(rows.count > 100)
    }

    @Test("each default in the reference is the reader's")
    func defaults() {
        for row in rows {
            guard let usual = keys[row.path] else { continue }
            // An empty list is the same as none. A section's heading has no default.
            let literal = row.literal == "[]" ? nil : row.literal
            guard !row.usual.isEmpty else { continue }
            #expect(literal == usual, "\(row.path): the page says \(row.usual), the reader \(usual ?? "nothing")")
        }
    }

    @Test("editors show the first sentence of each row")
    func descriptions() async throws {
        let run = try await Self.reference(["--check"])
        #expect(run.ending == .exited(0), "\(run.transcript)")
    }
}
