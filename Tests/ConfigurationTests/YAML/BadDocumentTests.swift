import Configuration
import Heimdallr
import Testing

@Suite("A document that can't be used is refused with its place")
struct BadDocumentTests {
    static let nothing = "c.yaml: the file is empty: write at least `upstreams:`; see the documentation"

    static let documents: KeyValuePairs<String, [String]> = [
        "": [nothing],
        "\n# only a comment\n": [nothing],
        "~": [nothing],
        "proxy": ["c.yaml:1:1: write `key: value` lines at the top of the file, not a single value"],
        "- a": ["c.yaml:1:1: write `key: value` lines at the top of the file, not a list"],
        "proxi: {}": ["c.yaml:1:1: unknown key \"proxi\"; did you mean \"proxy\"?"],
        "zzz: {}": ["c.yaml:1:1: unknown key \"zzz\""],
        "proxy:\n": ["c.yaml:1:1: proxy has no value: write one or leave the key out"],
        "proxy: 5": ["c.yaml:1:8: proxy: write a mapping of `key: value` lines, not a single value"],
        "log: {level: info}\nproxy:\n\tthreads: 1":
            ["c.yaml:3:1: not valid YAML: there is a tab here: indent with spaces"],
        "a: b: c":
            [
                "c.yaml:1:5: not valid YAML: a second key can't stand in this line: put a value that contains \": \" in "
                    + "quotes, or write the key on a separate line"
            ],
        "log: {}\n---\nlog: {}":
            ["c.yaml:2:1: a second YAML document starts here: write one document only, without further `---`"],
        "log: {level: \"\u{7}\"}": ["c.yaml:1:15: control character U+7: remove it"],
        "log: !!map {}": ["c.yaml:1:6: YAML tags are not supported: leave out !!map"],
        "log: {level: !secret info}": ["c.yaml:1:14: YAML tags are not supported: leave out !secret"],
        "log: &a {level: info}":
            ["c.yaml:1:6: anchors and aliases are not supported: write the value where it is needed"],
        "log:\n  <<: {level: info}": ["c.yaml:2:3: merge keys (<<) are not supported: write the keys out"],
        "log:\n  level: info\n\tformat: text":
            ["c.yaml:3:1: not valid YAML: there is a tab here: indent with spaces"],
        "log:\n  level: \"info\n":
            ["c.yaml:2:10: not valid YAML: the quote that opens here is not closed: write \" behind the value"],
        "# ü\nlog: {level: 'info}\n":
            ["c.yaml:2:14: not valid YAML: the quote that opens here is not closed: write ' behind the value"],
        "log:\n  level: \"info\n  format: \"text\"\nproxy: {}\n":
            ["c.yaml:2:10: not valid YAML: the quote that opens here is not closed: write \" behind the value"],
        "log: *common\nproxi: {}":
            [
                "c.yaml:1:6: put a value that starts with * in quotes; anchors and aliases are not supported",
                "c.yaml:2:1: unknown key \"proxi\"; did you mean \"proxy\"?",
            ],
        "? [a]\n: 1": ["c.yaml:1:3: a key must be a plain word"],
        "upstreams:\n  - host: *.example.com":
            ["c.yaml:2:11: put a value that starts with * in quotes, \"*.example.com\"; aliases are not supported"],
    ]

    @Test("a document that can't be used is refused with its place", arguments: documents)
    func refused(_ yaml: String, _ expected: [String]) {
        #expect(problems(yaml) == expected)
    }

    @Test("every duplicate key is named with both places, at any depth, quoted or not, three times over")
    func duplicates() {
        let yaml = """
            log:
              level: info
              format: text
              "level": debug
              level: info
            proxy: {threads: 1, open: false, threads: 2}
            log: {}
            """
        #expect(
            problems(yaml) == [
                "c.yaml:4:3: duplicate key \"level\": it is already in line 2",
                "c.yaml:5:3: duplicate key \"level\": it is already in line 2",
                "c.yaml:6:34: duplicate key \"threads\": it is already in line 6",
                "c.yaml:7:1: duplicate key \"log\": it is already in line 1",
            ])
    }

    @Test("an alias bomb costs nothing, as values and as keys")
    func aliasBomb() {
        var yaml = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
        for level in 1...40 {
            let alias = "*a\(level - 1)"
            yaml += "a\(level): &a\(level) [\(Array(repeating: alias, count: 9).joined(separator: ", "))]\n"
        }
        yaml += "? *a40\n: 1\n? *a40\n: 2\n"
        #expect(problems(yaml).contains { $0.contains("aliases are not supported") })
    }

    @Test("nesting without end is an error, not a crash", arguments: ["[", "{a: ", "- "])
    func deepNesting(_ opening: String) {
        for depth in [40, 990, 5000] {
            let found = problems("log: \n  " + String(repeating: opening, count: depth))
            #expect(!found.isEmpty)
        }
        let closed = "log: " + String(repeating: "[", count: 40) + String(repeating: "]", count: 40)
        #expect(problems(closed).contains("c.yaml:1:37: nested too deeply: no setting has so many levels"))
    }

    @Test(
        "a document of endless nesting is refused in no time, whatever it is made of", .timeLimit(.minutes(1)),
        arguments: [("log: ", "["), ("log: ", "{a: "), ("", "? "), ("log:\n ", "- "), ("log: ", "? [")])
    func deepNestingIsQuick(_ start: String, _ opening: String) {
        let begin = ContinuousClock.now
        let found = problems(start + String(repeating: opening, count: 100_000))
        #expect(!found.isEmpty && found.count < 100, "\(found.count)")
        #expect(begin.duration(to: .now) < .seconds(2))
    }

    @Test("private-use characters and asterisks stay what they are")
    func privateUse() throws {
        let yaml = """
            clients:
              a: {token_endpoint: https://i.example/t, client_id: x, audience: "\u{E000}*\u{E001}"}
            upstreams:
              - {host: a.example, client: a}
            """
        #expect(try good(yaml).configuration.clients[0].audience == "\u{E000}*\u{E001}")
    }

    @Test("very short texts are read in full", arguments: ["log: {}", "proxy: {}", "a: 1"])
    func shortTexts(_ yaml: String) {
        for length in 0...yaml.count { _ = problems(String(yaml.prefix(length))) }
        #expect(problems("a: 1") == ["c.yaml:1:1: unknown key \"a\""])
    }
}
