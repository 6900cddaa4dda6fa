import Testing

@testable import Configuration

@Suite("secrets in a wrong form")
struct SecretFormTests {
    /// `s3cret` in UTF-16, little endian.
    private static let utf16 = "s3cret".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }

    private static let mark: [UInt8] = [0xEF, 0xBB, 0xBF]
    private static let twoLines = Array("s3cret\nother".utf8)
    private static let pem = Array("-----BEGIN X-----\nabc\n-----END X-----".utf8)

    static let forms: [(bytes: [UInt8], form: SecretForm?)] = [
        (mark + "s3cret".utf8, .byteOrderMark), (mark + pem, .byteOrderMark),
        ([0xFF, 0xFE] + utf16, .utf16), ([0xFE, 0xFF, 0] + utf16, .utf16), (utf16, .utf16),
        ([0] + utf16.dropLast(), .utf16),
        (Array("s3\0cret".utf8), .nul), ([0], .nul),
        (twoLines, .lineEnd), (Array("s3cret\rother".utf8), .lineEnd), (Array("\na\r\nb\n".utf8), .lineEnd),
        (Array("s3cret".utf8), nil), ([], nil), (Array("s3cret \n\n".utf8), nil), (pem, nil),
        (Array("p\u{E4}ss".utf8), nil),
        (Array("{\"a\":\n1}".utf8), nil), (Array("<a>\n</a>".utf8), nil),
        ([0xFF, 0xFE] + (0..<30).map { $0 * 8 }, nil),
    ]

    @Test(arguments: forms)
    func `each wrong form has its name, and documents and raw keys are in order`(bytes: [UInt8], form: SecretForm?) {
        #expect(SecretForm(bytes) == form)
    }

    @Test func `a file, a variable and a value are judged, and never shown`() throws {
        let folder = try TemporaryFolder()
        let client = "client_id: x, token_endpoint: https://i.example/t"
        for (content, word) in [
            ("\u{FEFF}s3cret", "byte order mark"), ("s3\0cret", "NUL"), ("s3cret\nother", "on one line"),
        ] {
            let file = try folder.write("secret", content)
            // YAML itself refuses the other two.
            let value = content.contains("\n") ? ["\"\(content.replacing("\n", with: "\\n"))\""] : []
            for source in ["{file: \(file)}", "{env: S}"] + value {
                let warnings = try good(
                    "clients: {a: {\(client), client_secret: \(source)}}\nupstreams: [{host: a.example, client: a}]\n",
                    environment: ["S": content]
                ).warnings.map(\.description)
                #expect(
                    warnings.contains { $0.contains("client_secret: the secret") && $0.contains(word) }, "\(warnings)")
                #expect(!warnings.joined().contains("s3cret"))
            }
        }
    }

    @Test(arguments: [
        "proxy: {users: {ann: {env: S}}}\nupstreams: [{host: a.example}]",
        "upstreams: [{host: a.example, inject: {header: X, value: {env: S}}}]",
        "upstreams: [{host: a.example, inject: {basic: {username: u, password: {env: S}}}}]",
    ])
    func `where a wrong form prevents the use, one error names it`(yaml: String) {
        let found = problems(yaml, environment: ["S": String(decoding: Self.utf16, as: UTF8.self)])
        #expect(found.count == 1 && found[0].contains("it is in UTF-16, not in UTF-8: save it as UTF-8"), "\(found)")
    }
}
