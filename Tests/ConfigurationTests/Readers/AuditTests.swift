import Configuration
import Testing

@Suite struct AuditTests {
    private let rest = "\nupstreams:\n  - host: a.example"

    @Test func `the audit stream goes to a file, to standard error, or nowhere`() throws {
        #expect(
            try good("audit: {file: /var/log/audit.jsonl}" + rest).configuration.audit == .file("/var/log/audit.jsonl"))
        #expect(try good("audit: stderr" + rest).configuration.audit == .standardError)
        #expect(try good("log: {}" + rest).configuration.audit == nil)
    }

    @Test(arguments: [
        ("audit: stdout", "1:8: audit: write `stderr`, or `{file: PATH}`, not \"stdout\""),
        ("audit: {}", "audit: write `file: PATH`, or `audit: stderr`"),
        ("audit: {path: /x}", "unknown key \"path\" in audit"),
        ("audit: [stderr]", "audit: write a mapping of `key: value` lines"),
        ("audit:", "audit has no value: write one or leave the key out"),
    ])
    func `another value for audit is refused with what to write`(text: String, sentence: String) {
        #expect(problems(text + rest).contains { $0.contains(sentence) }, "\(problems(text + rest))")
    }
}
