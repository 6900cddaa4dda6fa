import Configuration
import Foundation
import Heimdallr
import Testing

@Suite("A configuration file")
struct FileTests {
    private func problems(_ file: String) -> [String] {
        do {
            _ = try Configuration.load(file: file, environment: [:])
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test("a configuration file that can't be read is refused by name")
    func unreadable() throws {
        let folder = try TemporaryFolder()
        let missing = folder.path + "/none.yaml"
        #expect(problems(missing) == ["\(missing): there is no such file: make it, or correct the path"])
        #expect(problems(folder.path) == ["\(folder.path): this is a directory, not a file"])
        #expect(problems("/dev/null") == ["/dev/null: this is not a regular file"])
        let latin = try folder.write("latin.yaml", Array("log: {}\n# ".utf8) + [0xFC, 0x0A])
        #expect(problems(latin) == ["\(latin):2:3: not valid UTF-8: save the file as UTF-8"])
        let utf16 = try folder.write("utf16.yaml", [0xFF, 0xFE, 0x6C, 0x00])
        #expect(problems(utf16) == ["\(utf16):1:1: not valid UTF-8: save the file as UTF-8"])
        let large = try folder.write("large.yaml", String(repeating: "#", count: 9 << 20))
        #expect(problems(large) == ["\(large): the file is larger than 8192 KiB"])
        let empty = try folder.write("empty.yaml", "")
        #expect(problems(empty) == ["\(empty): the file is empty: write at least `upstreams:`; see the documentation"])
    }

    @Test("a configuration file names others relative to its folder; an empty secret file is an error")
    func relative() throws {
        let folder = try TemporaryFolder()
        try folder.write("secret", "\n")
        let file = try folder.write(
            "c.yaml",
            """
            clients:
              a: {token_endpoint: https://i.example/t, client_id: a, client_secret: {file: secret}}
            upstreams: [{host: a.example, client: a}]
            """)
        #expect(
            problems(file) == [
                "\(file):2:80: clients.a.client_secret: can't read the secret file \(folder.path)/secret: the file is "
                    + "empty: put the secret into it"
            ])
        try folder.write("secret", "x\n")
        let configuration = try Configuration.load(file: file, environment: [:]).configuration
        #expect(configuration.clients[0].clientSecret == .file(path: folder.path + "/secret"))
    }

    @Test("a certificate needs its key")
    func certificate() throws {
        let folder = try TemporaryFolder()
        try folder.write("c.pem", "-----BEGIN CERTIFICATE-----")
        let file = try folder.write(
            "c.yaml",
            """
            upstreams:
              - {host: a.example, tls: {cert_file: c.pem}}
              - {host: b.example, tls: {key_file: c.pem}}
            """)
        #expect(
            problems(file) == [
                "\(file):2:40: upstreams[0].tls.cert_file: a certificate needs its key: write `key_file` too",
                "\(file):3:39: upstreams[1].tls.key_file: a key needs its certificate: write `cert_file` too",
            ])
    }

    @Test("a certificate in one file with its key needs no second name")
    func oneFile() throws {
        let folder = try TemporaryFolder()
        try folder.write("svid.pem", "-----BEGIN CERTIFICATE-----\n-----BEGIN EC PRIVATE KEY-----")
        let file = try folder.write(
            "c.yaml", "upstreams: [{host: a.example, tls: {cert_file: svid.pem}}]")
        let tls = try Configuration.load(file: file, environment: [:]).configuration.upstreams[0].tls
        #expect(tls.certFile == folder.path + "/svid.pem" && tls.keyFile == tls.certFile)
    }

    @Test(
        "a configuration file says beforehand whether it wants the playground",
        arguments: [
            ("playground: true", true), ("log: {}\r\nplayground: true # demo\r\n", true), ("playground: false", false),
            ("# playground: true", false), ("log:\n  playground: true", false), ("", false),
        ])
    func playground(_ yaml: String, _ wanted: Bool) throws {
        let folder = try TemporaryFolder()
        #expect(Configuration.wantsPlayground(file: try folder.write("c.yaml", yaml)) == wanted)
        #expect(!Configuration.wantsPlayground(file: folder.path + "/none"))
    }

    @Test("the playground's names are ordinary variables: unset means an error")
    func playgroundNames() throws {
        let folder = try TemporaryFolder()
        let file = try folder.write(
            "c.yaml",
            """
            playground: true
            clients:
              demo:
                token_endpoint: ${HEIMDALLR_PLAYGROUND_AUTH}/token
                allow_plaintext: true
                client_id: demo
            upstreams:
              - {host: api.example, url: "http://${HEIMDALLR_PLAYGROUND_API}", allow_plaintext: true, client: demo}
            """)
        #expect(problems(file).count == 2)
        let environment = [
            "HEIMDALLR_PLAYGROUND_AUTH": "http://127.0.0.1:1", "HEIMDALLR_PLAYGROUND_API": "127.0.0.1:2",
        ]
        let configuration = try Configuration.load(file: file, environment: environment).configuration
        #expect(configuration.playground)
        #expect(configuration.clients[0].tokenEndpoint == "http://127.0.0.1:1/token")
        #expect(configuration.upstreams[0].url?.description == "http://127.0.0.1:2")
    }
}
