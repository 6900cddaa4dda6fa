import Configuration
import Foundation
import Testing

@Suite("Mistakes that nobody sees are named where they stand")
struct OversightTests {
    private static let rest = "upstreams: []\n"

    @Test(
        "a character that looks like another one is named with its place",
        arguments: [
            "proxy:\n  listen: \u{A0}127.0.0.1:8080\n": "c.yaml:2:11: there is a no-break space (U+00A0) here",
            "proxy:\n\u{A0} listen: 127.0.0.1:8080\n": "c.yaml:2:1: there is a no-break space (U+00A0)",
            "proxy:\n  threads: 1\n \u{A0}listen: 127.0.0.1:8080\n": "c.yaml:3:2: there is a no-break space (U+00A0)",
            "proxy:\n  list\u{200B}en: 127.0.0.1:8080\n":
                "c.yaml:2:7: there is a zero-width character (U+200B) here: remove it",
            "proxy:\n  listen: 127.0.0.1:8080\u{2060}\n": "c.yaml:2:25: there is a zero-width character (U+2060)",
            "proxy: {listen: \u{201C}127.0.0.1:8080\u{201D}}\n":
                "c.yaml:1:17: there is a typographic quotation mark (U+201C) here: write \" or '",
            "a:\n  \u{2013} host: x\n": "c.yaml:2:3: there is a typographic dash (U+2013) here: write -",
            "clients:\n  a:\n    issuer:\u{A0}x\n":
                "c.yaml:3:12: there is a no-break space (U+00A0) here: write a plain space",
            "a: \u{202E}x\n": "c.yaml:1:4: there is a mark of the writing direction (U+202E)",
            "proxy:\n  listen: \"\u{A0}127.0.0.1:8080\"\n": "\": it holds a no-break space (U+00A0)",
            "proxy:\n  listen: 127.0.0.1:\u{FEFF}8080\n":
                "c.yaml:2:21: byte order mark U+FEFF in the middle of the text: remove it",
        ] as KeyValuePairs<String, String>)
    func lookAlikes(yaml: String, expected: String) {
        let found = problems(yaml + Self.rest)
        #expect(found.contains { $0.contains(expected) }, "\(found)")
    }

    @Test func `every character may stand in quotes and comments`() throws {
        _ = try good(
            "# \u{201C}a\u{A0}comment\u{201D}\nclients: {a: {client_id: x, token_endpoint: https://i.example/t, params: {p: \"a\u{A0}b\"}}}\n"
                + "upstreams: [{host: a.example, client: a}]\n")
    }

    @Test(arguments: ["users:\n    ann {file: /a}\n", "users:\n    ann [x]: y\n"])
    func `a key without its colon is no name`(text: String) {
        let found = problems("proxy:\n  \(text)" + Self.rest)
        #expect(found.contains { $0.contains("a colon is missing behind \"ann\": write `key: value`") }, "\(found)")
    }

    @Test(
        "a list item that YAML folds into the value above it is found",
        arguments: [
            "proxy:\n  listen:\n    - 127.0.0.1:1\n     - 127.0.0.1:2\n":
                "c.yaml:4:6: not valid YAML: this list item is indented so far that it is part of the value in line 3: begin it in column 5, as line 3",
            "a:\n  paths: /a\n    - /b\n":
                "c.yaml:3:5: not valid YAML: this list item is indented so far that it is part of the value in line 2: write the value of line 2 as an item",
            "a:\n  - x\n    more\n    - y\n": "c.yaml:4:5",
        ] as KeyValuePairs<String, String>)
    func folded(yaml: String, expected: String) {
        let found = problems(yaml + Self.rest)
        #expect(found.contains { $0.contains(expected) }, "\(found)")
    }

    @Test(
        "a ~ is nobody's home folder",
        arguments: [
            "store: {kind: file, directory: ~, key: {env: KEY}}\n":
                "store.directory has no value (in YAML ~ means none)",
            "store: {kind: file, directory: ~/t, key: {env: KEY}}\n":
                "store.directory: write the full path: ~ is not expanded, not \"~/t\"",
            "audit: {file: ~/a}\n": "file: write the full path",
            "tls: {ca_file: ~/a}\n": "tls.ca_file: write the full path",
            "admin: {socket: ~/a}\n": "admin.socket: write the full path",
            "clients: {a: {client_id: x, client_secret: {file: ~/s}}}\n": "file: write the full path",
        ] as KeyValuePairs<String, String>)
    func tilde(yaml: String, expected: String) {
        let found = problems(yaml + Self.rest, environment: ["KEY": String(repeating: "k", count: 32)])
        #expect(found.contains { $0.contains(expected) }, "\(found)")
    }

    @Test(
        "a port out of range and a blank in an address are named",
        arguments: [
            "upstreams: [{host: \"a.example:65536\"}]\n": "upstreams[0].host: write a port from 1 to 65535, not",
            "upstreams: [{host: \"*.a.example:0\"}]\n": "write a port from 1 to 65535",
            "upstreams: [{host: a.example, url: \"https://a.example:99999/x\"}]\n":
                "url: write a port from 1 to 65535",
            "upstreams: [{host: a.example, proxy: \"http://p.example:99999999999999999999\"}]\n":
                "proxy: write a port from 1 to 65535",
            "proxy: {connect: tunnel, tunnels: [\"a.example:70000\"]}\nupstreams: []\n":
                "write a port from 1 to 65535",
            "clients: {a: {client_id: x, token_endpoint: \"https://i.example:0/t\"}}\nupstreams: []\n":
                "token_endpoint: write a port from 1 to 65535",
            "upstreams: [{host: a.example, url: \"https://a.example/x y\"}]\n":
                "url: write the URL without spaces; in a path, write %20",
            "clients: {a: {client_id: x, token_endpoint: \" https://i.example/t\"}}\nupstreams: []\n":
                "token_endpoint: write the URL without spaces",
            "upstreams: [{host: a.example, proxy: \"http://p.example:80 \"}]\n":
                "proxy: write the URL without spaces",
        ] as KeyValuePairs<String, String>)
    func addresses(yaml: String, expected: String) {
        let found = problems(yaml)
        #expect(found.contains { $0.contains(expected) }, "\(found)")
    }

    @Test func `a $NAME is told beside other errors`() throws {
        do {
            _ = try Configuration.parse(
                yaml:
                    "clients:\n  a: {client_id: $NAME, token_endpoint: \"https://${OTHER}/t\", timout: 3s}\nupstreams: []\n",
                file: "c.yaml", environment: [:])
            Issue.record("it was taken")
        } catch {
            #expect(error.problems.map(\.description).contains { $0.contains("variable OTHER is not set") })
            #expect(error.problems.map(\.description).contains { $0.contains("did you mean \"timeout\"") })
            #expect(
                error.warnings.map(\.description)
                    == [
                        "c.yaml:2:18: clients.a.client_id: $NAME is not replaced here: write ${NAME} for the environment variable"
                    ])
        }
    }

    @Test(
        "blanks at the ends of a secret are warned of",
        arguments: [
            ("s3cret \n", "ends"), ("s3cret\t", "ends"), ("s3cret\n\n", "ends"), ("s3cret\r\r\n", "ends"),
            (" s3cret\n", "begins"),
            ("s3cret\n", nil), ("s3cret\r\n", nil), ("s3 cret", nil),
            ("-----BEGIN X-----\nabc\n-----END X-----\n\n", nil),
        ])
    func blanks(content: String, word: String?) throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("secret", content)
        let warnings = try good(
            "clients: {a: {client_id: x, token_endpoint: https://i.example/t, client_secret: {file: \(file)}}}\n"
                + "upstreams: [{host: a.example, client: a}]\n"
        ).warnings
        #expect(warnings.count == (word == nil ? 0 : 1), "\(warnings)")
        if let word {
            #expect(
                warnings.first?.contains(
                    "clients.a.client_secret: the secret in \(file) \(word) with a space or a line end, which is sent as part of the secret"
                )
                    == true, "\(warnings)")
        }
        let variable = try good(
            "clients: {a: {client_id: x, token_endpoint: https://i.example/t, client_secret: {env: S}}}\n"
                + "upstreams: [{host: a.example, client: a}]\n", environment: ["S": content]
        ).warnings
        // Nothing is left out at the end of a variable.
        let isBlamed = word != nil || content.hasPrefix("s3cret")
        #expect(variable.count == (isBlamed ? 1 : 0), "\(variable)")
    }
}
