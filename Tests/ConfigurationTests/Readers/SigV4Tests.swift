@testable import Configuration
import HTTPMessage
import Testing

@Suite("sigv4 of inject")
struct SigV4Tests {
    private let environment = [
        "SECRET": "s3cr3t", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials?x=1",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": "/var/run/token",
    ]

    private func settings(_ text: String, _ environment: [String: String]) throws -> SigV4Settings? {
        let yaml = "upstreams: [{host: y.example, inject: {sigv4: {\(text)}}}]"
        guard
            case .sigv4(let settings)? = try good(yaml, environment: environment).configuration.upstreams[0].injections
                .first
        else { return nil }
        return settings
    }

    @Test func `keys of sigv4 may stand beside the region, or under credentials`() throws {
        let keys = "access_key_id: AKID, secret_access_key: {env: SECRET}, session_token: {env: SECRET}"
        let secret = SecretSource.environment(name: "SECRET")
        let expected = SigV4Settings(
            region: "eu-central-1", service: "s3",
            credentials: .keys(accessKeyID: .literal("AKID"), secretAccessKey: secret, sessionToken: secret))
        #expect(try settings("region: eu-central-1, service: s3, \(keys)", environment) == expected)
        #expect(try settings("region: eu-central-1, service: s3, credentials: {\(keys)}", environment) == expected)
    }

    @Test func `container credentials come from the environment, which exec takes away`() throws {
        let text = "region: eu-central-1, service: s3, credentials: container"
        guard case .container(let full)? = try settings(text, environment)?.credentials else {
            Issue.record("no container credentials")
            return
        }
        #expect(full.url.origin == "http://169.254.170.23" && full.url.target == "/v1/credentials?x=1")
        #expect(full.authorization == .file(path: "/var/run/token"))
        let ecs = ["AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/x", "AWS_CONTAINER_AUTHORIZATION_TOKEN": "t"]
        guard case .container(let relative)? = try settings(text, ecs)?.credentials else {
            Issue.record("no container credentials")
            return
        }
        #expect(relative.url.origin == "http://169.254.170.2" && relative.url.target == "/v2/x")
        #expect(relative.authorization == .environment(name: "AWS_CONTAINER_AUTHORIZATION_TOKEN"))
        let yaml = "upstreams: [{host: y.example, inject: {sigv4: {\(text)}}}]"
        let variables = try good(yaml, environment: ecs).configuration.variables
        #expect(variables.contains("AWS_CONTAINER_AUTHORIZATION_TOKEN"))
        #expect(variables.contains("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"))
    }

    @Test(
        arguments: [
            "service: s3, access_key_id: A, secret_access_key: {env: SECRET}":
                "`region` is missing: write eu-central-1",
            "region: r, access_key_id: A, secret_access_key: {env: SECRET}": "`service` is missing",
            "region: r, service: s3": "write `access_key_id` and `secret_access_key`, or `credentials: container`",
            "region: r, service: s3, access_key_id: A": "write `access_key_id` and `secret_access_key`",
            "region: r/x, service: s3, credentials: container": "write a name in small letters such as eu-central-1",
            "region: r, service: s3, credentials: other": "write container, or a mapping with access_key_id",
            "region: r, service: s3, credentials: container": "AWS_CONTAINER_CREDENTIALS_FULL_URI",
            "region: r, service: s3, access_key_id: \"A,B\", secret_access_key: {env: SECRET}":
                "access_key_id: the secret can't go onto a request: it may hold only visible ASCII",
            "region: r, service: s3, credentials: container, access_key_id: A":
                "write either the keys or `credentials`, not both",
            "region: r, service: s3, acces_key_id: A": "unknown key \"acces_key_id\"",
        ] as KeyValuePairs<String, String>)
    func `a value of sigv4 that does not fit is refused`(text: String, message: String) {
        let found = problems("upstreams: [{host: y.example, inject: {sigv4: {\(text)}}}]")
        #expect(found.contains { $0.contains(message) }, "\(found)")
        #expect(!found.joined().contains("s3cr3t"))
    }

    @Test func `container credentials never cross a network in plain text`() {
        let yaml =
            "upstreams: [{host: y.example, inject: {sigv4: {region: r, service: s3, credentials: container}}}]"
        for (url, isGood) in [
            ("http://10.0.0.1/x", false), ("http://example.com/", false), ("ftp://127.0.0.1/", false), ("x", false),
            ("http://127.0.0.1:9/x", true), ("http://localhost/x", true), ("https://example.com/x", true),
            ("http://[fd00:ec2::23]/v1/credentials", true), ("http://169.254.170.2.example.com/", false),
        ] {
            let found = problems(yaml, environment: ["AWS_CONTAINER_CREDENTIALS_FULL_URI": url])
            #expect(found.isEmpty == isGood, "\(url) \(found)")
        }
    }

    @Test func `a signature has Authorization for itself`() {
        let sigv4 = "{sigv4: {region: r, service: s3, access_key_id: A, secret_access_key: {env: SECRET}}}"
        let found = problems(
            "upstreams: [{host: y.example, inject: [\(sigv4), {basic: {username: u}}]}]")
        #expect(found.count == 1 && found[0].contains("Authorization is already set by upstreams[0].inject[0]"))
    }
}
