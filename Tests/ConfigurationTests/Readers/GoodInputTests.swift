@testable import Configuration
import HTTPMessage
import Heimdallr
import Testing
import WireText

@Suite("Good input becomes values")
struct GoodInputTests {
    /// The complete example of the documentation, with what this version supports.
    static func complete(in folder: TemporaryFolder) throws -> String {
        try folder.write("ca.pem", "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----\n")
        try folder.write("key.pem", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n")
        try folder.write("billing", "s3cr3t\n")
        try folder.write("store.key", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n")
        return """
            proxy:
              listen: [127.0.0.1:8080, "[::1]:8080", localhost:0]
              threads: 2
              open: true
              unmatched: forward
              connect: tunnel
              tunnels: [GitHub.com:443, "[0::1]:22", "*"]
              private_networks: [10.0.0.0/8, FD00::/8]
              header_timeout: 500ms
              idle_timeout: 5m
              max_header_bytes: 32KiB
              max_body_bytes: 1GiB
              max_connections: 10
              drain_timeout: 0s
              drain_delay: 5s
            log: {level: debug, format: json, access: false}
            tls: {ca_file: ca.pem}
            store: {kind: file, directory: state, key: {file: store.key}}
            playground: false
            clients:
              billing:
                grant_type: client_credentials
                token_endpoint: https://idp.example.com/token?tenant=1
                client_id: billing-sidecar
                client_secret: {file: billing}
                token_endpoint_auth_method: client_secret_post
                basic_encoding: percent
                treat_as_bearer: [access_token]
                scope: [billing.read, billing.write]
                resource: [https://billing.example.com]
                audience: urn:billing
                params: {any: extra, b: "1"}
                headers: {X-Any: extra}
                default_expires_in: 1m
                default_token_type: Bearer
                refresh_before: 30s
                timeout: 3s
                proxy: http://corporate:3128
                tls: {ca_file: ca.pem, cert_file: ca.pem, key_file: key.pem}
                labels: {team: billing}
              person:
                grant_type: password
                allow_deprecated: true
                allow_plaintext: true
                token_endpoint: http://idp.example.com/token
                client_id: app
                username: anna
                password: {env: SECRET}
                scope: "a b  c"
              seeded:
                grant_type: urn:ietf:params:oauth:grant-type:refresh_token
                token_endpoint: https://idp.example.com/token
                client_id: app
                refresh_token: ${SECRET}
              exchange:
                grant_type: token-exchange
                token_endpoint: https://idp.example.com/token
                client_id: app
                subject_token: {env: SECRET}
                actor_token: ${SECRET}
                actor_token_type: urn:x
                requested_token_type: jwt
                authorization_details:
                  - {type: payment, amount: 12.50, instant: true, note: "12", tags: [a, null]}
              own:
                grant_type: https://example.com/grants/own
                token_endpoint: https://idp.example.com/token
                client_id: 12345
                client_secret: literal
                proxy: environment
            upstreams:
              - host: Billing.Example.com.
                paths: [/v1/]
                methods: [GET, POST]
                client: billing
                listen: 127.0.0.1:9001
                hosts: [billing.local]
                browsers: true
                url: https://billing.internal:443/base/
                inject: {header: X-Token, scheme: ""}
                on_existing: reject
                set_headers: {User-Agent: "reports/1.0 (a b)", X-Empty: ""}
                remove_headers: [X-Debug, Accept-Encoding]
                token_wait: 1s
                connect_timeout: 1s
                response_timeout: off
                idle_timeout: off
                max_connections: 5
                max_connection_age: 1h
                http2: true
                proxy: none
                tls: {server_name: billing.example.com}
              - {host: "*.example.com:8443", client: person, allow_deprecated: true, inject: {query: access_token}}
              - {host: "api.example.com:8443", client: seeded}
              - {host: "[0::1]:9", client: exchange, url: "http://[::1]:9", allow_plaintext: true}
              - {host: own.example.com, client: own}
              - host: plain.example.com
            """
    }

    @Test("the complete example gives every value as it stands")
    func completeExample() throws {
        let folder = try TemporaryFolder()
        let yaml = try Self.complete(in: folder)
        let (configuration, warnings) = try good(yaml, file: folder.path + "/c.yaml")
        #expect(
            warnings.map { $0.split(separator: ": ", maxSplits: 1).last.map(String.init) } == [
                "proxy.tunnels: clients of a listener can reach any public address: write `users`, or list targets",
                "clients.own.client_secret: the configuration contains a secret: write {file: PATH} or {env: NAME} instead",
            ])

        var proxy = ProxySettings()
        proxy.listen = [
            .tcp(host: "127.0.0.1", port: 8080), .tcp(host: "::1", port: 8080), .tcp(host: "localhost", port: 0),
        ]
        proxy.threads = 2
        proxy.open = true
        proxy.unmatched = .forward
        proxy.connect = .tunnel
        proxy.tunnels = try [
            .authority(Authority(parsing: "github.com:443")), .authority(Authority(parsing: "[::1]:22")), .any,
        ]
        proxy.privateNetworks = [
            try #require(AddressBlock(.ipv4(0x0A00_0000), length: 8)),
            try #require(AddressBlock(.ipv6(high: 0xFD00 << 48, low: 0), length: 8)),
        ]
        proxy.headerTimeout = .milliseconds(500)
        proxy.idleTimeout = .seconds(300)
        proxy.maxHeaderBytes = 32 * 1024
        proxy.maxBodyBytes = 1 << 30
        proxy.maxConnections = 10
        proxy.drainTimeout = .zero
        proxy.drainDelay = .seconds(5)
        #expect(configuration.proxy == proxy)

        var log = LogSettings()
        (log.level, log.format, log.access) = (.debug, .json, false)
        #expect(configuration.log == log)
        #expect(configuration.trustAnchorsFile == folder.path + "/ca.pem")
        #expect(
            configuration.store
                == .file(directory: folder.path + "/state", key: .file(path: folder.path + "/store.key")))
        #expect(configuration.admin == nil)
        #expect(configuration.clients.map(\.name) == ["billing", "person", "seeded", "exchange", "own"])
    }

    @Test("a store's key is 32 bytes as they are, or their base64")
    func storeKeys() throws {
        let folder = try TemporaryFolder()
        let encoded = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
        for content in [
            [UInt8](repeating: 0x0A, count: 31) + [0x20], (0..<32).map { UInt8($0) | 0xE0 }, Array(encoded.utf8),
            Array("\(encoded)=\r\n".utf8), Array(" \(encoded.replacing("A", with: "-"))=\n".utf8),
        ] {
            let file = try folder.write("key", content)
            let (configuration, _) = try good("store: {kind: file, directory: /d, key: {file: \(file)}}")
            #expect(configuration.store == .file(directory: "/d", key: .file(path: file)))
        }
        let (configuration, _) = try good(
            "store: {kind: file, directory: /d, key: {env: KEY}}", environment: ["KEY": encoded])
        #expect(configuration.store == .file(directory: "/d", key: .environment(name: "KEY")))
    }

    @Test("a store in PostgreSQL has one key, or several while they change")
    func postgres() throws {
        let key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
        let environment = ["DATABASE": "host=a", "NEW": key, "OLD": key.replacing("A", with: "B")]
        let (one, _) = try good(
            "store: {kind: postgres, connection: {env: DATABASE}, key: {env: NEW}}", environment: environment)
        var settings = PostgresSettings(connection: .environment(name: "DATABASE"), keys: [.environment(name: "NEW")])
        #expect(one.store == .postgres(settings))
        #expect(settings.space == "default")
        let (two, _) = try good(
            "store: {kind: postgres, connection: {env: DATABASE}, space: eu, keys: [{env: NEW}, {env: OLD}]}",
            environment: environment)
        settings.space = "eu"
        settings.keys.append(.environment(name: "OLD"))
        #expect(two.store == .postgres(settings))
    }

    @Test("every key of a client arrives")
    func client() throws {
        let folder = try TemporaryFolder()
        let (configuration, _) = try good(try Self.complete(in: folder), file: folder.path + "/c.yaml")
        var billing = ClientSettings(name: "billing")
        billing.tokenEndpoint = "https://idp.example.com/token?tenant=1"
        billing.clientID = "billing-sidecar"
        billing.clientSecret = .file(path: folder.path + "/billing")
        billing.authMethod = .clientSecretPost
        billing.basicEncoding = .percent
        billing.treatAsBearer = ["access_token"]
        billing.scope = ["billing.read", "billing.write"]
        billing.resource = ["https://billing.example.com"]
        billing.audience = "urn:billing"
        billing.parameters = [.init("any", "extra"), .init("b", "1")]
        billing.headers = [.init(name: "X-Any", value: "extra")]
        billing.defaultExpiresIn = .seconds(60)
        billing.defaultTokenType = "Bearer"
        (billing.refreshBefore, billing.timeout) = (.seconds(30), .seconds(3))
        billing.proxy = .url("http://corporate:3128")
        billing.tls.caFile = folder.path + "/ca.pem"
        billing.tls.certFile = folder.path + "/ca.pem"
        billing.tls.keyFile = folder.path + "/key.pem"
        billing.labels = [.init(name: "team", value: "billing")]
        #expect(configuration.clients[0] == billing)

        let person = configuration.clients[1]
        #expect(person.grantType == .password)
        #expect(person.username == "anna")
        #expect(person.password == .environment(name: "SECRET"))
        #expect(person.scope == ["a", "b", "c"])
        #expect(person.authMethod == .none)
        #expect(configuration.clients[2].grantType == .refreshToken)
        #expect(configuration.clients[2].refreshToken == .environment(name: "SECRET"))
        let exchange = configuration.clients[3]
        #expect(exchange.grantType == .tokenExchange)
        #expect(
            exchange.exchange
                == ExchangeSettings(
                    subject: .secret(.environment(name: "SECRET")),
                    subjectType: "urn:ietf:params:oauth:token-type:access_token", actor: .environment(name: "SECRET"),
                    actorType: "urn:x", requestedType: "urn:ietf:params:oauth:token-type:jwt"))
        #expect(
            exchange.authorizationDetails == [
                .object([
                    "type": .string("payment"), "amount": .number("12.50"), "instant": .bool(true),
                    "note": .string("12"), "tags": .array([.string("a"), .null]),
                ])
            ])
        let own = configuration.clients[4]
        #expect(own.grantType == .extension("https://example.com/grants/own"))
        #expect(own.clientID == "12345")
        #expect(own.clientSecret == .literal("literal"))
        #expect(own.authMethod == .clientSecretBasic)
        #expect(own.proxy == .environment)
    }

    @Test("every key of an upstream arrives, its host canonical")
    func upstream() throws {
        let folder = try TemporaryFolder()
        let (configuration, _) = try good(try Self.complete(in: folder), file: folder.path + "/c.yaml")
        var first = UpstreamSettings(host: .init(wildcard: false, host: .name("billing.example.com"), port: nil))
        first.paths = ["/v1/"]
        first.methods = ["GET", "POST"]
        first.client = "billing"
        first.listen = .tcp(host: "127.0.0.1", port: 9001)
        first.hosts = [try Authority(parsing: "billing.local")]
        first.browsers = true
        first.url = .init(scheme: .https, authority: .init(host: .name("billing.internal"), port: nil), path: "/base")
        first.injections = [.header(name: "X-Token", scheme: "")]
        first.setHeaders = [
            .init(name: "User-Agent", value: "reports/1.0 (a b)"), .init(name: "X-Empty", value: ""),
        ]
        first.removeHeaders = ["X-Debug", "Accept-Encoding"]
        first.onExisting = .reject
        first.tokenWait = .seconds(1)
        first.connectTimeout = .seconds(1)
        first.responseTimeout = nil
        first.idleTimeout = nil
        first.maxConnections = 5
        first.maxConnectionAge = .seconds(3600)
        first.http2 = .offered
        first.tls.serverName = "billing.example.com"
        #expect(configuration.upstreams[0] == first)

        let wildcard = configuration.upstreams[1]
        #expect(wildcard.host == .init(wildcard: true, host: .name("example.com"), port: 8443))
        #expect(wildcard.url == nil)
        #expect(wildcard.injections == [.query(name: "access_token")])
        #expect(configuration.upstreams[2].url?.description == "https://api.example.com:8443")
        #expect(configuration.upstreams[3].host.description == "[::1]:9")
        #expect(configuration.upstreams[4].url?.description == "https://own.example.com")
        #expect(configuration.upstreams[4].injections == [.header(name: "Authorization", scheme: "Bearer")])
        #expect(configuration.upstreams[5].client == nil)
        #expect(!configuration.upstreams[5].injects)
    }

    @Test("a key that is left out has the documented default")
    func defaults() throws {
        let (configuration, warnings) = try good("log: {}")
        var expected = Configuration()
        expected.proxy.listen = [.tcp(host: "127.0.0.1", port: 8080)]
        #expect(configuration == expected)
        #expect(warnings == ["c.yaml: there are no `upstreams`: every request will be refused"])
    }

    @Test("${NAME} is filled in, also within a value; $${ stays")
    func substitution() throws {
        let yaml = """
            clients:
              a:
                token_endpoint: ${SCHEME}://${HOST}/token
                client_id: "a$${b}$c${EMPTY}$"
                client_secret: pre-${SECRET}
            upstreams: [{host: "${HOST}", client: a}]
            """
        let environment = ["SCHEME": "https", "HOST": "idp.example.com", "SECRET": "x", "EMPTY": ""]
        let (configuration, warnings) = try good(yaml, environment: environment)
        #expect(configuration.clients[0].tokenEndpoint == "https://idp.example.com/token")
        #expect(configuration.clients[0].clientID == "a${b}$c$")
        #expect(configuration.clients[0].clientSecret == .literal("pre-x"))
        #expect(warnings == [])
    }

    @Test("doubtful values are warnings")
    func warnings() throws {
        let yaml = """
            proxy: {private_networks: [10.0.0.0/8]}
            clients:
              unused: {token_endpoint: https://i.example/t, client_id: a}
              used: {token_endpoint: https://i.example/t, client_id: a, proxy: "http://u:p@proxy.example:1"}
            upstreams:
              - {host: "*.internal", client: used}
            """
        #expect(
            try good(yaml).warnings == [
                "c.yaml:1:27: proxy.private_networks: this has no effect without `unmatched: forward`, `tunnels: [\"*\"]` or `client: auto`",
                "c.yaml:3:3: clients.unused: no upstream uses this client",
                "c.yaml:4:68: clients.used.proxy: the configuration contains a password: write ${NAME} instead",
                "c.yaml:6:12: upstreams[0].host: every host under .internal gets this client's token",
            ])
    }

    @Test("rules that differ in port, path depth or methods do not tie")
    func noTies() throws {
        let yaml = """
            upstreams:
              - host: a.example
              - host: a.example:443
              - {host: a.example, paths: [/v1]}
              - {host: a.example, paths: [/v1/x, /v2]}
              - {host: a.example, paths: [/v1], methods: [GET]}
              - {host: a.example, paths: [/v1], methods: [POST]}
              - host: "*.example"
              - host: "*.a.example"
            """
        #expect(try good(yaml).configuration.upstreams.count == 8)
    }

    @Test("a byte order mark and Windows line ends are fine")
    func windows() throws {
        let yaml = "\u{FEFF}log:\r\n  level: debug\r\nupstreams:\r\n  - host: a.example\r\n"
        #expect(try good(yaml).configuration.log.level == .debug)
        #expect(
            problems("log:\r\n  level: x") == [
                "c.yaml:2:10: log.level: write one of trace, debug, info, notice, warning, error, not \"x\""
            ])
    }

    @Test("a secret's value is not printed with the settings")
    func redaction() throws {
        let source = SecretSource.literal("hunter2")
        #expect("\(source)" == "<redacted>")
        #expect(String(reflecting: source) == "<redacted>")
    }

    @Test("a Unix socket is a listener, with the permissions that are written")
    func unixListeners() throws {
        let (configuration, warnings) = try good(
            """
            proxy:
              listen: [unix:/run/a.sock, {unix: /run/b.sock, mode: "0660"}, 127.0.0.1:8080]
              unmatched: forward
            """)
        #expect(
            configuration.proxy.listen == [
                .unix(path: "/run/a.sock", mode: nil), .unix(path: "/run/b.sock", mode: 0o660),
                .tcp(host: "127.0.0.1", port: 8080),
            ])
        #expect(warnings == [])
    }

    @Test("an address block is a value, whatever it was written as")
    func addressBlocks() throws {
        let block = try #require(AddressBlock(.ipv4(0x0A01_0203), length: 8))
        #expect(block.description == "10.1.2.3/8")
        #expect((block.high, block.low, block.bits) == (0, 0xFFFF_0A01_0203, 104))
        #expect(AddressBlock(.ipv6(high: 0, low: 1), length: 128)?.bits == 128)
        #expect(AddressBlock(.ipv4(0), length: 0)?.bits == 96)
        #expect(AddressBlock(.ipv4(0), length: 33) == nil)
        #expect(AddressBlock(.ipv6(high: 0, low: 0), length: 129) == nil)
        #expect(AddressBlock(.ipv6(high: 0, low: 0), length: -1) == nil)
        #expect(AddressBlock(.name("a.example"), length: 8) == nil)
    }
}
