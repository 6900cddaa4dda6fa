@testable import Configuration
import HTTPMessage
import Heimdallr
import Testing

@Suite("One upstream needs no file")
struct EnvironmentFormTests {
    static let minimal = [
        "HEIMDALLR_UPSTREAM": "https://api.example.com", "HEIMDALLR_TOKEN_ENDPOINT": "https://idp.example.com/token",
        "HEIMDALLR_CLIENT_ID": "app", "HEIMDALLR_CLIENT_SECRET": "s3cr3t",
    ]

    private func problems(_ environment: [String: String]) -> [String] {
        do {
            _ = try Configuration.fromEnvironment(environment)
            return []
        } catch {
            return error.problems.map(\.description)
        }
    }

    @Test("without HEIMDALLR_UPSTREAM there is no such configuration", arguments: [[:], ["HEIMDALLR_UPSTREAM": ""]])
    func absent(_ environment: [String: String]) throws {
        #expect(try Configuration.fromEnvironment(environment) == nil)
    }

    @Test("four variables make a client and an upstream")
    func four() throws {
        let (configuration, warnings) = try #require(try Configuration.fromEnvironment(Self.minimal))
        #expect(warnings.isEmpty)
        #expect(configuration.clients.count == 1)
        #expect(configuration.clients[0].tokenEndpoint == "https://idp.example.com/token")
        #expect(configuration.clients[0].clientID == "app")
        #expect(configuration.clients[0].clientSecret == .environment(name: "HEIMDALLR_CLIENT_SECRET"))
        #expect(configuration.clients[0].authMethod == .clientSecretBasic)
        #expect(configuration.upstreams.count == 1)
        #expect(configuration.upstreams[0].host.description == "api.example.com")
        #expect(configuration.upstreams[0].url?.description == "https://api.example.com")
        #expect(configuration.upstreams[0].client == configuration.clients[0].name)
        #expect(configuration.proxy == ProxySettings())
    }

    @Test("HEIMDALLR_ISSUER is enough where the issuer says the endpoints")
    func issuer() throws {
        var environment = Self.minimal
        environment["HEIMDALLR_TOKEN_ENDPOINT"] = nil
        environment["HEIMDALLR_ISSUER"] = "https://idp.example.com"
        let configuration = try #require(try Configuration.fromEnvironment(environment)).configuration
        #expect(configuration.clients[0].issuer == "https://idp.example.com")
        #expect(configuration.clients[0].tokenEndpoint == nil)
        environment["HEIMDALLR_ISSUER"] = "http://idp.example.com"
        #expect(problems(environment).count == 1)
        #expect(problems(environment).first?.hasPrefix("HEIMDALLR_ISSUER: ") == true)
    }

    @Test("a variable sets the admin port")
    func admin() throws {
        var environment = Self.minimal
        environment["HEIMDALLR_ADMIN_LISTEN"] = "127.0.0.1:9090"
        environment["HEIMDALLR_ADMIN_SOCKET"] = "/run/x.sock"
        let admin = try #require(try Configuration.fromEnvironment(environment)).configuration.admin
        #expect(admin?.listen == .tcp(host: "127.0.0.1", port: 9090))
        #expect(admin?.socket == "/run/x.sock")
        environment["HEIMDALLR_ADMIN_LISTEN"] = "0.0.0.0:9090"
        #expect(problems(environment).count == 1)
    }

    @Test("further variables mean what their keys mean; values are taken as they are")
    func further() throws {
        let folder = try TemporaryFolder()
        var environment = Self.minimal
        environment["HEIMDALLR_CLIENT_SECRET"] = nil
        environment["HEIMDALLR_CLIENT_SECRET_FILE"] = try folder.write("s", "x")
        environment["HEIMDALLR_UPSTREAM"] = "http://127.0.0.1:9/v1"
        environment["HEIMDALLR_ALLOW_PLAINTEXT"] = "true"
        environment["HEIMDALLR_SCOPE"] = "a b"
        environment["HEIMDALLR_AUDIENCE"] = "${NOT_A_NAME}"
        environment["HEIMDALLR_LISTEN"] = "0.0.0.0:3128"
        environment["HEIMDALLR_OPEN"] = "true"
        environment["HEIMDALLR_UPSTREAM_LISTEN"] = "127.0.0.1:9001"
        environment["HEIMDALLR_LOG_LEVEL"] = "debug"
        environment["HEIMDALLR_LOG_FORMAT"] = ""
        environment["HEIMDALLR_PLAYGROUND_API"] = "127.0.0.1:1"
        let (configuration, warnings) = try #require(try Configuration.fromEnvironment(environment))
        #expect(warnings.isEmpty)
        #expect(configuration.clients[0].clientSecret == .file(path: folder.path + "/s"))
        #expect(configuration.clients[0].scope == ["a", "b"])
        #expect(configuration.clients[0].audience == "${NOT_A_NAME}")
        #expect(configuration.upstreams[0].host.description == "127.0.0.1:9")
        #expect(configuration.upstreams[0].url?.description == "http://127.0.0.1:9/v1")
        #expect(configuration.upstreams[0].listen == .tcp(host: "127.0.0.1", port: 9001))
        #expect(configuration.proxy.listen == [.tcp(host: "0.0.0.0", port: 3128)])
        #expect(configuration.log.level == .debug)
    }

    @Test("every problem names its variable")
    func named() {
        let found = problems(["HEIMDALLR_UPSTREAM": "api.example.com", "HEIMDALLR_LISTEN": "0.0.0.0:1"])
        #expect(
            Set(found) == [
                "HEIMDALLR_UPSTREAM: write an absolute URL such as https://api.example.com, not \"api.example.com\"",
                "HEIMDALLR_LISTEN: 0.0.0.0:1 is not loopback, so other machines could use the tokens: listen on "
                    + "127.0.0.1, or write HEIMDALLR_OPEN=true if that is meant",
                "environment: HEIMDALLR_CLIENT_ID is missing: write the identifier that the authorization server issued",
                "environment: HEIMDALLR_TOKEN_ENDPOINT is missing: write the URL that issues tokens, or HEIMDALLR_ISSUER",
            ])
        var plain = Self.minimal
        plain["HEIMDALLR_UPSTREAM"] = "http://api.example.com"
        #expect(
            problems(plain) == [
                "HEIMDALLR_UPSTREAM: the token would cross the network in plain text: write https://, or "
                    + "HEIMDALLR_ALLOW_PLAINTEXT=true if that is meant"
            ])
    }

    @Test("a misspelt variable is a warning")
    func misspelt() throws {
        var environment = Self.minimal
        environment["HEIMDALLR_SCOPES"] = "a"
        let (_, warnings) = try #require(try Configuration.fromEnvironment(environment))
        #expect(warnings.map(\.description) == ["HEIMDALLR_SCOPES: unknown variable; did you mean HEIMDALLR_SCOPE?"])
    }
}
