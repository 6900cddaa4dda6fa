import Configuration
import Testing

@Suite struct AuditTests {
    private let rest = "\nupstreams:\n  - host: a.example"

    @Test func `a file, standard error, or nothing`() throws {
        #expect(
            try good("audit: {file: /var/log/audit.jsonl}" + rest).configuration.audit == .file("/var/log/audit.jsonl"))
        #expect(try good("audit: stderr" + rest).configuration.audit == .standardError)
        #expect(try good("log: {}" + rest).configuration.audit == nil)
    }

    @Test(arguments: [
        ("audit: stdout", "c.yaml:1:8: audit: write `stderr`, or `{file: PATH}`, not \"stdout\""),
        ("audit: {}", "c.yaml:1:8: audit: write `file: PATH`, or `audit: stderr`"),
        ("audit: {path: /x}", "c.yaml:1:9: unknown key \"path\" in audit; did you mean \"file\"?"),
        ("audit: [stderr]", "c.yaml:1:8: audit: write a mapping of `key: value` lines, not a list"),
        ("audit:", "c.yaml:1:1: audit has no value: write one or leave the key out"),
    ])
    func `nonsense is told what to write`(text: String, problem: String) {
        #expect(problems(text + rest).contains(problem), "\(problems(text + rest))")
    }
}
