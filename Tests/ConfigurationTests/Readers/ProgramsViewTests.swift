import Configuration
import Testing

@Suite("what a program's user reads of the configuration")
struct ProgramsViewTests {
    private static let yaml = """
        proxy: {listen: "127.0.0.1:${PORT}", users: {alice: {file: /nowhere/alice}, bob: "${BOB}x"}}
        admin: {listen: 0.0.0.0:8081, token: {file: "${CREDENTIALS_DIRECTORY}/admin"}}
        store: {kind: file, directory: "${STATE_DIRECTORY}/tokens", key: {env: STORE_KEY}}
        interception: {directory: "${STATE_DIRECTORY}/tls", key: {file: "${CREDENTIALS_DIRECTORY}/tls"}}
        tls: {ca_file: "${CREDENTIALS_DIRECTORY}/ca.pem"}
        clients:
          items:
            issuer: "${ISSUER}"
            client_id: "${CLIENT_ID}"
            client_secret: {file: "${CREDENTIALS_DIRECTORY}/items"}
          signed:
            token_endpoint: https://idp.test/token
            client_id: signed
            token_endpoint_auth_method: private_key_jwt
            client_key: {env: SIGNED_KEY}
          bound:
            token_endpoint: https://idp.test/token
            client_id: bound
            client_secret: {command: [/nowhere/secret]}
            tls: {cert_file: /nowhere/client.pem, key_file: "${CREDENTIALS_DIRECTORY}/client.key"}
        upstreams:
          - {host: "${HOST}", client: items, intercept: true}
          - {host: b.test, url: "https://${B}/", client: signed}
          - {host: c.test, client: bound, intercept: true, tls: {server_cert_file: /nowhere/c.pem, server_key_file: /nowhere/c.key}}
        """

    @Test func `neither secrets nor variables of the proxy are needed to use the proxy`() throws {
        let environment = ["PORT": "8080", "HOST": "a.test"]
        let settings: Configuration
        do {
            settings = try Configuration.parse(
                yaml: Self.yaml, file: "c.yaml", environment: environment, isForPrograms: true
            ).configuration
        } catch {
            Issue.record("\(error)")
            return
        }
        #expect(settings.proxy.listen == [.tcp(host: "127.0.0.1", port: 8080)])
        #expect(settings.upstreams.map(\.host.description) == ["a.test", "b.test", "c.test"])
        #expect(settings.upstreams.map(\.intercepts) == [true, false, true])
        #expect(settings.proxy.users == ["alice": .file(path: "/nowhere/alice"), "bob": .environment(name: "BOB")])
    }

    @Test func `variables of the addresses and hosts, and mistakes, are told as always`() throws {
        for (environment, name) in [(["PORT": "8080"], "HOST"), (["HOST": "a.test"], "PORT")] {
            let error = #expect(throws: ConfigurationError.self) {
                try Configuration.parse(
                    yaml: Self.yaml, file: "c.yaml", environment: environment, isForPrograms: true)
            }
            #expect(error?.problems.map(\.message).count { $0.contains("\(name) is not set") } == 1, "\(error as Any)")
        }
        #expect(throws: ConfigurationError.self) {
            try Configuration.parse(
                yaml: "upstream: []", file: "c.yaml", environment: [:], isForPrograms: true)
        }
    }

    @Test(arguments: [
        ("dpop: true", "`dpop` binds the tokens"),
        ("certificate_bound: true", "`certificate_bound` binds the tokens"),
        ("grant_type: token-exchange\n    subject_token: caller", "each token belongs to the program"),
    ])
    func `exportable is refused where no other program can use the tokens`(line: String, fault: String) {
        let found = problems(
            """
            clients:
              a:
                token_endpoint: https://idp.test/token
                client_id: a
                client_secret: {env: SECRET}
                exportable: true
                \(line)
            upstreams: [{host: a.test, client: a}]
            """)
        #expect(found.contains { $0.contains(fault) }, "\(found)")
    }

    @Test func `an exportable client needs no upstream`() throws {
        let clients = "clients: {a: {token_endpoint: https://idp.test/token, client_id: a, client_secret: {env: SECRET}"
        let rest = "}}\nupstreams: [{host: a.test}]"
        #expect(try good(clients + rest).warnings.contains { $0.contains("no upstream uses this client") })
        let exported = try good(clients + ", exportable: true" + rest)
        #expect(!exported.warnings.contains { $0.contains("no upstream uses") })
        #expect(exported.configuration.clients.map(\.isExportable) == [true])
    }
}

@Suite("token files in the configuration")
struct TokenFileSettingsTests {
    private func client(_ lines: String) -> String {
        "clients: {a: {token_endpoint: https://idp.test/token, client_id: a, client_secret: {env: SECRET}, \(lines)}}\n"
            + "upstreams: [{host: a.test}]"
    }

    @Test func `a token file has a path, and defaults for the rest`() throws {
        let plain = try good(client("exportable: true, file: {path: /run/a.token}")).configuration.clients[0].file
        #expect(
            plain?.path == "/run/a.token" && plain?.mode == 0o600 && plain?.format == "plain" && plain?.group == nil)
        let all = client("exportable: true, file: {path: /run/a, mode: \"0640\", group: prometheus, format: json}")
        let file = try #require(try good(all).configuration.clients[0].file)
        #expect(file.mode == 0o640 && file.group == "prometheus" && file.format == "json")
    }

    @Test(arguments: [
        ("exportable: true, file: {mode: \"0600\"}", "write `path`"),
        ("exportable: true, file: {path: /a, mode: \"0660\"}", "nobody else"),
        ("exportable: true, file: {path: /a, mode: \"0644\"}", "nobody else"),
        ("exportable: true, file: {path: /a, format: git}", "write one of"),
        ("exportable: true, file: {path: /a, format: netrc}", "write one of"),
        ("file: {path: /a}", "exportable: true"), ("exportable: false, file: {path: /a}", "exportable: true"),
    ])
    func `a token file that would show the token to others, or that no program reads, is refused`(
        lines: String, fault: String
    ) {
        let found = problems(client(lines))
        #expect(found.contains { $0.contains(fault) }, "\(found)")
    }
}
