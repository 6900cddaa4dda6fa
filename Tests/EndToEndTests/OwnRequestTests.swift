import Foundation
import TestSupport
import Testing

@Suite("requests that the proxy makes by itself say who asks", .timeLimit(.minutes(3)))
struct OwnRequestTests {
    /// An issuer, a webhook, a collector, the container's credentials and an upstream, all at one origin.
    private static func world() throws -> RecordingOrigin {
        try RecordingOrigin { exchange in
            let request = try exchange.readBody()
            let url = "http://\(request.field("Host") ?? "")"
            let body =
                switch request.target {
                case "/.well-known/oauth-authorization-server":
                    #"{"issuer":"\#(url)","authorization_endpoint":"\#(url)/authorize","token_endpoint":"\#(url)/token","#
                        + #""code_challenge_methods_supported":["S256"]}"#
                case "/credentials": #"{"AccessKeyId":"AKID","SecretAccessKey":"secret"}"#
                default: ""
                }
            let type = request.target == "/v1/traces" ? "application/x-protobuf" : "application/json"
            try exchange.respond(200, fields: [("Content-Type", type)], body: body)
        }
    }

    @Test func `documents, webhook, spans, container credentials and doctor send the product's name`() async throws {
        let world = try Self.world()
        let api = try publishingAPI(naming: world.url)
        let environment = ["AWS_CONTAINER_CREDENTIALS_FULL_URI": world.url + "/credentials"]
        let proxy = try await RunningProxy.auto(
            api.url, auto: "issuer: \"\(world.url)\", client_id: app",
            more: """
                  - host: aws.test
                    url: \(world.url)
                    allow_plaintext: true
                    inject: {sigv4: {region: eu-central-1, service: execute-api, credentials: container}}
                hooks: {webhook: "\(world.url)/told", allow_plaintext: true}
                tracing: {otlp: "\(world.url)", sample: 1}
                """, environment: environment)
        #expect(try await proxy.get("http://aws.test/forwarded").status == 200)
        #expect(try await proxy.get("http://mcp.test/forwarded").status == 503)
        let page = try await PlainBrowser().open(
            "http://\(try await proxy.administration().address)/login/mcp.test")
        #expect(page.contains(world.url), "\(page)")
        let metadata = "/.well-known/oauth-authorization-server"
        try await eventually("a request of each kind", within: .seconds(60)) {
            Set(["/credentials", "/told", "/v1/traces", metadata]).isSubset(of: world.requests.map(\.target))
        }
        _ = try await RunningProxy.run(
            ["doctor", "--no-token", "--config", proxy.directory.path(of: "config.yaml")], environment: environment)
        for request in world.requests + api.requests where request.target != "/forwarded" {
            #expect(request.field("User-Agent")?.hasPrefix("heimdallr-proxy/") == true, "\(request.line)")
        }
        #expect(api.requests.contains { $0.target.hasPrefix("/.well-known/oauth-protected-resource") })
        #expect(world.requests.contains { $0.method == "HEAD" } && api.requests.contains { $0.method == "HEAD" })
    }
}
