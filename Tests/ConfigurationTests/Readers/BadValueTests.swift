import Configuration
import Testing

@Suite("A value that does not fit is refused with its place and what to write instead")
struct BadValueTests {
    @Test("an admin port that others can reach needs a token, and one of its own")
    func admin() {
        #expect(
            problems("proxy: {open: true}\nadmin: {listen: 0.0.0.0:8081}") == [
                "c.yaml:2:17: admin.listen: 0.0.0.0:8081 is not loopback, so other machines could read the status: "
                    + "listen on 127.0.0.1, or set `token` under `admin`"
            ])
        #expect(problems("admin: {listen: 0.0.0.0:8081, token: {env: SECRET}}") == [])
        #expect(
            problems("proxy: {listen: 127.0.0.1:8081}\nadmin: {}") == [
                "c.yaml:2:8: admin.listen: 127.0.0.1:8081 is taken by 127.0.0.1:8081 in line 1: write another port"
            ])
        #expect(
            problems("admin: {hosts: [a.example:1], socket: /\(String(repeating: "x", count: 107)), page: 1}") == [
                "c.yaml:1:17: admin.hosts: write a host name such as api.example.com, without a port, not "
                    + "\"a.example:1\"",
                "c.yaml:1:39: admin.socket: write a path of at most 107 bytes, not \"/\(String(repeating: "x", count: 79))…\"",
                "c.yaml:1:149: unknown key \"page\" in admin",
            ])
    }

    @Test("a store on disk needs a directory and a key of 32 bytes")
    func store() throws {
        #expect(problems("store: {kind: file}") == ["c.yaml:1:8: store: `kind: file` needs `directory` and `key`"])
        #expect(problems("store: {}") == ["c.yaml:1:8: store: write `kind: memory`, `kind: file` or `kind: postgres`"])
        #expect(
            problems("store: {kind: memory, directory: /d}") == [
                "c.yaml:1:34: store.directory: this belongs to `kind: file`: leave it out"
            ])
        let folder = try TemporaryFolder()
        let noKey =
            "store.key: this is not a key of 32 bytes, raw or in base64: make one with "
            + "`heimdallr-proxy keygen --output FILE`"
        for text in ["short", String(repeating: "k", count: 33), String(repeating: "f0", count: 32)] {
            let file = try folder.write("key", text)
            #expect(
                problems("store: {kind: file, directory: d, key: {file: \(file)}}") == ["c.yaml:1:40: \(noKey)"])
            #expect(
                problems("store: {kind: file, directory: d, key: {env: KEY}}", environment: ["KEY": text]) == [
                    "c.yaml:1:40: \(noKey)"
                ])
        }
    }

    @Test("a store in PostgreSQL needs a connection and its keys")
    func postgresStore() throws {
        let environment = ["DB": "host=a", "KEY": String(repeating: "k", count: 32), "BAD": "short"]
        func said(_ text: String) -> [String] { problems("store: {kind: postgres\(text)}", environment: environment) }
        let needs =
            "c.yaml:1:8: store: `kind: postgres` needs `connection`, and either `key` or, while keys change, `keys: [NEW, OLD]`"
        #expect(said("") == [needs])
        #expect(said(", connection: {env: DB}") == [needs])
        #expect(said(", key: {env: KEY}") == [needs])
        #expect(said(", connection: {env: DB}, key: {env: KEY}, keys: [{env: KEY}]") == [needs])
        #expect(said(", connection: {env: DB}, keys: []").contains { $0.contains("write a list of 1 to 16 secrets") })
        #expect(said(", connection: {env: DB}, keys: [{env: BAD}]").contains { $0.contains("32 bytes") })
        #expect(
            said(", connection: {env: DB}, key: {env: KEY}, directory: /d").contains { $0.contains("`kind: file`") })
        #expect(said(", connection: {env: DB}, key: {env: KEY}, space: a b").contains { $0.contains("without spaces") })
        #expect(
            problems("store: {kind: file, directory: /d, key: {env: KEY}, space: a}", environment: environment)
                .contains { $0.contains("`kind: postgres`") })
    }

    @Test("everything is reported at once, in the order of the file")
    func allAtOnce() {
        let yaml = """
            proxy:
              listen: 0.0.0.0:8080
              threads: many
            clients:
              billing:
                token_endpoint: http://idp.example.com/token
                client_secret: {file: /nonexistent/secret}
                clinet_id: billing
            upstreams:
              - host: billing.example.com
                client: biling
              - host: billing.example.com
            """
        #expect(
            problems(yaml).map { $0.split(separator: " ", maxSplits: 1).first.map(String.init) } == [
                "c.yaml:2:11:", "c.yaml:3:12:", "c.yaml:5:3:", "c.yaml:6:21:", "c.yaml:7:27:", "c.yaml:8:5:",
                "c.yaml:11:13:", "c.yaml:12:11:",
            ])
    }

    @Test("a secret's value is never in a message")
    func secretsStayOut() {
        let yaml = """
            clients:
              a:
                token_endpoint: "https://idp.example.com:${SECRET}/t"
                client_id: "${SECRET}\\t"
                client_secret: hunter2-literal
                proxy: http://u:${SECRET}@bad host
                headers: {X: "${SECRET}\\n"}
            upstreams: [{host: "${SECRET} x", client: "${SECRET}"}]
            """
        let text = problems(yaml, environment: ["SECRET": "s3cr3t"]).joined(separator: "\n")
        #expect(text.split(separator: "\n").count >= 5)
        #expect(!text.contains("hunter2"))
        #expect(!text.contains("s3cr3t"))
    }
}
