import Configuration
import Foundation
import Testing

@Suite("What is probably a mistake is said, where it stands")
struct AdviceTests {
    private func configuration(client: String = "", more: String = "") -> String {
        """
        clients:
          a:
            token_endpoint: https://idp.example.com/token
            client_id: x
        \(client.isEmpty ? "" : "    " + client)
        upstreams:
          - {host: api.example.com, client: a}
        \(more)
        """
    }

    @Test(
        "a comma in a scope is warned of, with both ways to write a list",
        arguments: ["scope: a,b", "scope: \"a, b\"", "scope: [\"a,b\", c]"])
    func comma(client: String) throws {
        let warnings = try good(configuration(client: client)).warnings
        #expect(warnings.count == 1)
        #expect(warnings.first?.contains("write [read, write] or \"read write\"") == true, "\(warnings)")
        #expect(warnings.first?.hasPrefix("c.yaml:5:12: clients.a.scope: ") == true, "\(warnings)")
        #expect(try good(configuration(client: "scope: a b")).warnings == [])
    }

    @Test("$NAME without braces is warned of where nothing replaces it")
    func dollar() throws {
        let warnings = try good(configuration(client: "audience: https://$TENANT/x")).warnings
        #expect(
            warnings == [
                "c.yaml:5:15: clients.a.audience: $TENANT is not replaced here: write ${TENANT} for the environment "
                    + "variable"
            ])
        let lowercase = "audience: $secret_of_mine"
        #expect(try good(configuration(client: lowercase)).warnings == [])
        #expect(try good(configuration(client: lowercase), environment: ["secret_of_mine": "1"]).warnings.count == 1)
        let none = ["$${NOT_ONE}", "${SECRET}", "a$", "5$ and more"]
        for text in none { #expect(try good(configuration(client: "audience: \"\(text)\"")).warnings == []) }
        // A shell's own line.
        #expect(
            try good(configuration(more: "hooks: {command: [sh, -c, \"echo $HOME $HEIMDALLR_EVENT\"]}")).warnings == [])
    }

    @Test("a secret that was meant to come from the environment, and none of it is shown")
    func secretDollar() throws {
        let warnings = try good(configuration(client: "client_secret: ab$CDEFG")).warnings
        #expect(warnings.contains { $0.contains("write ${NAME} for an environment variable") })
        #expect(!warnings.contains { $0.contains("CDEFG") })
    }

    @Test(
        "a secret's file that others may read is warned of",
        arguments: [(0o600, 0), (0o400, 0), (0o640, 1), (0o644, 1), (0o604, 1)])
    func readers(mode: Int, count: Int) throws {
        let folder = try TemporaryFolder()
        let file = try folder.write("secret", "s3cr3t")
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: file)
        try FileManager.default.createSymbolicLink(atPath: folder.path + "/link", withDestinationPath: "secret")
        for path in [file, folder.path + "/link"] {
            let warnings = try good(configuration(client: "client_secret: {file: \(path)}")).warnings
            #expect(warnings.count == count)
            guard count == 1 else { continue }
            let warning = try #require(warnings.first)
            #expect(warning.contains("other users may read the file \(path) too (mode \(String(mode, radix: 8)))"))
            #expect(warning.contains("chmod 600"))
        }
    }

    @Test(
        "an open quote and a tab are reported where they are",
        arguments: [
            ("proxy:\n  listen: \"127.0.0.1:8080\nadmin:\n  socket: \"x\"\n", "2:11", "write \" behind the value"),
            ("proxy:\n  listen: \"127.0.0.1:8080\nadmin: {}\n", "2:11", "write \" behind the value"),
            ("proxy:\n  listen: '127.0.0.1:8080\nadmin:\n  socket: x\n", "2:11", "write ' behind the value"),
            ("log: {level: \"info, format: json}\nadmin: {}\n", "1:14", "write \" behind the value"),
            ("# it's\nproxy: {listen: [\"a\", 'b]}\n", "2:23", "write ' behind the value"),
            ("proxy:\n\tlisten: 127.0.0.1:8080\n", "2:1", "indent with spaces"),
            ("proxy:\n  threads: 1\n  \tlisten: 127.0.0.1:8080\n", "3:3", "indent with spaces"),
            ("hooks:\n  command: |\n    it's \"\n\tx: 1\n", "4:1", "indent with spaces"),
        ])
    func places(yaml: String, place: String, advice: String) {
        let found = problems(yaml)
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix("c.yaml:\(place): not valid YAML: ") == true, "\(found)")
        #expect(found.first?.contains(advice) == true, "\(found)")
    }

    @Test("quotes and tabs that are right are left alone")
    func rightQuotes() throws {
        let text = configuration(
            client: "audience: 'it''s \"x\" # no comment'   # it's\n    resource:\t\"https://r.example.com/\"")
        #expect(try good(text).warnings == [])
        let found = problems("log: {level: 'info'}\nadmin: {a: \"x\\\"y\"}: b\n")
        #expect(found.contains { $0.contains("c.yaml:2:") && !$0.contains("is not closed") }, "\(found)")
    }

    @Test("every variable that the text names is known, wherever it stands")
    func variables() throws {
        let text = """
            clients:
              a:
                token_endpoint: https://${HOST_PART}/token
                client_id: x
                client_secret: {env: SECRET}
                params: {key: "p-${IN_PARAMS}", env: NOT_A_SOURCE, literal: "$${ESCAPED}"}
                headers: {X-Key: "${IN_HEADERS}"}
                proxy: http://u:${IN_PROXY}@proxy.example.com:3128
            upstreams:
              - {host: api.example.com, client: a, paths: ["/${IN_LIST}"]}
            """
        let names = ["HOST_PART", "SECRET", "IN_PARAMS", "IN_HEADERS", "IN_PROXY", "IN_LIST"]
        let environment = Dictionary(uniqueKeysWithValues: names.map { ($0, "v") })
        #expect(try good(text, environment: environment).configuration.variables == Set(names))
    }
}
