import Configuration
import Foundation
import TestSupport
import Testing
import WireText

/// Every text that a test of this target reads goes through it: what the reader takes, the schema has to take.
enum EditorSchema {
    static let checker = Result { try SchemaChecker(schema: Configuration.schema().text(.compact)) }

    /// Lines that an editor would mark.
    static func problems(_ yaml: String) -> [String] {
        do {
            return try checker.get().problems(yaml)
        } catch {
            return ["\(error)"]
        }
    }

    /// `Configuration.parse`, and a problem where an editor would mark what is good.
    ///
    /// YAML that only one of two YAML readers takes (a tab in front of a comment) is no matter of the schema's. That the
    /// checker runs is a test of its own.
    static func agrees(_ yaml: String, _ location: SourceLocation) {
        guard let problems = try? checker.get().problems(yaml), problems.first?.hasPrefix("not read: ") != true else {
            return
        }
        #expect(problems == [], "the schema refuses what the reader takes: \(yaml)", sourceLocation: location)
    }
}

@Suite("An editor marks what is wrong by the schema, and nothing that is good")
struct SchemaTests {
    /// What a schema can know: of the other mistakes `check` tells.
    private static let known = [
        "unknown key ", "not a list", "not a mapping", "not nothing", "write true or false", "write true, false",
        "write a duration such as", "write a size such as", "write a whole number from",
        ": write one of ", "write a list", "write a mapping", "write HOST:PORT", "write host:port",
        "write an address block such",
        "write an absolute URL", "write an absolute URI", "write a path that starts with /",
        " needs `assertion`", " needs `subject_token`", " needs `refresh_token`", " needs `client_", " is missing",
        "belongs to `grant_type", "write either `file` or", "write {file: PATH}", "is deprecated (RFC 9700)",
        "write forward", "write client_credentials, authorization_code", "write client_secret", "write access_token",
    ]

    static let bad: [(yaml: String, message: String)] =
        BadProxyValueTests.proxy.map { ("proxy:\n  \($0.key)\nupstreams: [{host: a.example.com}]", $0.value) }
        + BadClientValueTests.client.map {
            (
                """
                clients:
                  a:
                    token_endpoint: https://idp.example.com/token
                    client_id: a
                    \($0.key)
                upstreams: [{host: a.example.com, client: a}]
                """, $0.value
            )
        }
        + BadUpstreamValueTests.upstream.map {
            (
                """
                clients: {a: {token_endpoint: https://idp.example.com/token, client_id: a}}
                upstreams:
                  - \($0.key)
                """, $0.value
            )
        }

    @Test("the schema is valid, by a real checker")
    func checker() throws {
        #expect(try EditorSchema.checker.get().problems("upstreams: [{host: a.example.com}]") == [])
    }

    @Test("editors mark wrong words, wrong types, wrong shapes and unknown keys", arguments: bad)
    func refused(_ yaml: String, _ message: String) {
        guard Self.known.contains(where: message.contains) else { return }
        #expect(EditorSchema.problems(yaml) != [], "\(message)")
    }
}
