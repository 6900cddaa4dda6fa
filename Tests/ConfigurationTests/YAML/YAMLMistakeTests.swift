import Configuration
import Testing

@Suite("A mistake in the YAML is reported where it is mended, with what to write")
struct YAMLMistakeTests {
    /// The text, the place, and words of the advice.
    typealias Case = (yaml: String, place: String, advice: String)

    static let quotes: [Case] = [
        ("a:\n  b: 'it's\n  c: d\n", "2:6", "closed in column 9"),
        ("a:\n  b: 'it's me'\n  c: 'd'\n", "2:6", "closed in column 9"),
        ("a: {b: 'it's', c: d}\n", "1:8", "other kind of quotes"), ("a: ['it's', b]\n", "1:5", "other kind"),
        ("a: \"it \"is\" so\"\n", "1:4", "other kind"), ("a: \"x\"y\nb: c\n", "1:4", "other kind"),
        ("a: \"x\nb: c\n", "1:4", "not closed: write \" behind"),
        ("a: 'x\nb: c\n", "1:4", "not closed: write ' behind"),
        ("a: 'x\nb: 'y\nc: z\n", "1:4", "not closed"), ("a: \"x\nb: 1\nc: \"y\"\nd: e\n", "1:4", "not closed"),
        ("a: 'x\n# it's\nb: c\n", "1:4", "not closed"), ("a:\n  b: {c: 'd}\n  e: 'f'\n", "2:10", "not closed"),
        ("a: [b, 'c]\nd: e\n", "1:8", "not closed"), ("a: \"x\\\n", "1:4", "not closed"),
    ]

    static let signs: [Case] = [
        ("a: @b\n", "1:4", "starts with @ in quotes"), ("a: `b\n", "1:4", "starts with ` in quotes"),
        ("a: %b\n", "1:4", "starts with % in quotes"), ("a: {b: %{c}}\n", "1:8", "starts with %"),
        ("a: *.b.c\n", "1:4", "\"*.b.c\""), ("@a: b\n", "1:1", "starts with @"),
    ]

    static let tabs: [Case] = [
        ("\ta: 1\n", "1:1", "a tab"), ("a:\n\tb: 1\n", "2:1", "a tab"), ("a:\n  b: 1\n\tc: 2\n", "3:1", "a tab"),
        ("a:\n  b: 1\n \tc: 2\n", "3:2", "a tab"), ("a:\n\t- b\n", "2:1", "a tab"), ("a:\n  -\tb\n", "2:4", "a tab"),
        ("a: b\n\t# c\nd: e\n", "2:1", "a tab"), ("a:\r\n\tb: 1\r\n", "2:1", "a tab"), ("a:\r\tb: 1\r", "2:1", "a tab"),
    ]

    static let colons: [Case] = [
        ("a: b: c\n", "1:5", "contains \": \" in quotes"), ("a:\n  b: http://x:80/ c: d\n", "2:20", "quotes"),
        ("a: \"b\": c\n", "1:7", "on a separate line"), ("a:\n  b:1\n  c: 2\n", "2:5", "a space is missing"),
        ("a:\n  c: 2\n  b:1\n", "3:5", "a space is missing"), ("a:\n  b 1\n  c: 2\n", "2:4", "a colon is missing"),
        ("a:\n  c: 2\n  b 1\n", "3:4", "a colon is missing"), ("a\n  b: c\n", "1:2", "a colon is missing"),
        ("proxy:\n  threads:1\n", "2:11", "a space is missing"),
        ("proxy:\n  threads 1\n", "2:10", "a colon is missing"),
        ("proxy:1", "1:7", "a space is missing"), ("proxy {}", "1:6", "a colon is missing"),
        ("clients:\n  a:\n    client_id:x\n", "3:15", "a space is missing"),
        ("log: {level:info}\n", "1:13", "a space is missing"), ("a: {b: c:}\n", "1:9", "quotes"),
        ("log: {level info, access: false}\n", "1:12", "a colon is missing"),
        ("upstreams:\n  - host a.test\n    client: a\n", "2:9", "a colon is missing"),
        ("upstreams:\n  - host: a.test\n  - host b.test\n    client: a\n", "3:9", "a colon is missing"),
        ("upstreams:\n  - host: a.test\n    inject:\n      - header X-Key\n        secret: a\n", "4:15", "a colon"),
        ("upstreams:\n  -   host\n      client: a\n", "2:11", "a colon is missing"),
    ]

    static let lines: [Case] = [
        ("a:\n  b: 1\n    c: 2\n", "3:5", "too far: begin it in column 3"), ("a: b c\n  d: e\n", "2:3", "too far"),
    ]

    static let documents: [Case] = [
        ("log: {}\n---\nlog: {}\n", "2:1", "one document"),
        ("a: \"\u{0}\"", "1:5", "UTF-8"), ("a: b\u{FEFF}\n", "1:5", "byte order mark"),
        ("a: b\u{2028}c: d\n", "1:5", "normal line break"), ("a: b\r\nc: \u{85}\r\n", "2:4", "normal line break"),
        ("a: b\rc: \u{1}", "2:4", "remove it"),
    ]

    /// Mistakes that the parser's own message shows. Those of brackets and escapes are at their beginning.
    static let shownByParser: [Case] = [
        ("a:\n  b: [c, d\n  e: 1\n", "2:6", "did not find expected ',' or ']'"),
        ("{a: b\n", "1:1", "did not find expected ',' or '}'"),
        ("a:\n  b: {c: {d: 1}\n  e: {f: 1}\n", "2:6", "flow mapping"), ("a: {b: c d: e}\n", "1:4", "flow mapping"),
        ("a: \"c:\\dir\"\n", "1:4", "unknown escape"), ("a: [b]]\nc: 1\n", "1:7", "did not find expected key"),
        ("a:\n    b: 1\n  c: 2\n", "3:3", "did not find expected key"), ("a: - b\n", "1:4", "not allowed"),
        ("a:\n  - b: 1\n  c: 2\n", "3:3", "did not find expected '-'"), ("a: 1\n...\nb: 2\n", "3:1", "document start"),
    ]

    @Test("a mistake that the parser's own message shows is reported in its words", arguments: shownByParser)
    func shown(_ yaml: String, _ place: String, _ words: String) {
        #expect(
            problems(yaml).map { $0.hasPrefix("c.yaml:\(place): not valid YAML: ") && $0.contains(words) } == [true])
    }

    @Test(
        "a mistake in the YAML is told at its place, in one plain sentence",
        arguments: quotes + signs + tabs + colons + lines + documents)
    func mistake(_ yaml: String, _ place: String, _ advice: String) {
        let found = problems(yaml)
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix("c.yaml:\(place): ") == true, "\(found)")
        #expect(found.first?.contains(advice) == true, "\(found)")
        for jargon in ["while parsing", "while scanning", "did not find", "token", "scalar", "node"] {
            #expect(found.first?.contains(jargon) == false, "\(found)")
        }
    }

    @Test("a byte order mark in front, CRLF and CR are no mistakes, and move no place")
    func lineEnds() {
        for end in ["\n", "\r\n", "\r"] {
            #expect(
                problems("\u{FEFF}log: {level: info}\(end)proxi: {}\(end)").first?.hasPrefix("c.yaml:2:1: ") == true)
            #expect(problems("a: b\(end)c: 'it's\(end)").first?.hasPrefix("c.yaml:2:4: ") == true)
        }
    }

    @Test("no value of the text is shown, but a host's")
    func secrets() {
        for line in [
            "'s3cr3t's3cr3t'", "\"s3cr3t\" s3cr3t", "@s3cr3t", "`s3cr3t", "%s3cr3t", "*s3cr3t", "&s3cr3t",
            "!s3cr3t!x y",
            "s3cr3t: s3cr3t", "[s3cr3t", "{s3cr3t", "\"s3cr3t", "'s3cr3t", "\n    s3cr3t s3cr3t", "\n    s3cr3t:s3cr3t",
            "|s3cr3t", "? s3cr3t", "- s3cr3t", "s3cr3t\n      x: s3cr3t", "\n    s3cr3t\n    a: b",
        ] {
            let found = problems("clients:\n  a:\n    client_secret: \(line)\n    scope: b\n")
            #expect(!found.isEmpty)
            #expect(found.allSatisfy { !$0.contains("s3cr3t") }, "\(line) \(found)")
        }
    }

    @Test func `the value of a key in braces without its colon is not shown`() {
        for (entry, column) in [("client_secret s3cr3t", 34), ("client_secret:s3cr3t", 35)] {
            let found = problems("clients:\n  a: {client_id: x, \(entry)}\n")
            #expect(
                found.contains { $0.contains("c.yaml:2:\(column): ") && $0.contains("is missing here") }, "\(found)")
            #expect(found.allSatisfy { !$0.contains("s3cr3t") }, "\(found)")
        }
    }

    @Test("whatever is cut off or left out, there is a place")
    func mutations() {
        let text = """
            proxy: {listen: "127.0.0.1:0"}
            clients:
              a: {token_endpoint: 'https://idp.example.com/t', client_id: "x", scope: [a, b]}
            upstreams:
              - host: api.example.com   # ours
                client: a

            """
        // A third of the positions, others in each run.
        for index in text.indices.dropFirst(Int.random(in: 0..<3)).enumerated().filter({ $0.offset % 3 == 0 }).map(
            \.element)
        {
            let before = String(text[..<index])
            let after = String(text[index...])
            var changed = [before, before + after.dropFirst()]
            for sign in ["\t", "'", "\"", "\n", "[", "}", ":", "- "] { changed.append(before + sign + after) }
            for changed in changed {
                for problem in problems(changed) where problem.contains("not valid YAML") {
                    #expect(problem.contains(#/^c\.yaml:\d+:\d+: /#), "\(problem)")
                }
            }
        }
    }
}
