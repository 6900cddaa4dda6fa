import Configuration
import Heimdallr
import Testing

@Suite("metadata services and keys of AWS") struct MetadataTests {
    private func text(_ metadata: String, client: String = "", exportable: Bool = true) -> String {
        """
        clients:
          api: {token_endpoint: "https://idp.test/token", client_id: a, client_secret: {env: SECRET}, exportable: \(exportable)}
          cloud: {grant_type: aws, region: eu-west-1, exportable: true, \(client.isEmpty ? "access_key_id: A, secret_access_key: {env: SECRET}" : client)}
        metadata:
          - {\(metadata)}
        """
    }

    @Test func `a service answers at the platform's addresses, and renews its client's token early`() throws {
        let configuration = try good(text("kind: google, client: api")).configuration
        #expect(configuration.upstreams.map(\.host.description) == ["metadata.google.internal", "169.254.169.254"])
        #expect(configuration.upstreams.allSatisfy { $0.metadata?.kind == .google && $0.client == "api" })
        #expect(configuration.clients.first { $0.name == "api" }?.refreshBefore == .seconds(330))
        let aws = try good(text("kind: aws, client: cloud")).configuration
        #expect(aws.clients.first { $0.name == "cloud" }?.refreshBefore == .seconds(960))
        #expect(
            aws.clients.first { $0.name == "cloud" }?.tokenEndpoint == "https://sts.eu-west-1.amazonaws.com/")
    }

    @Test func `a service with a listener answers there alone`() throws {
        let configuration = try good(text("kind: azure, client: api, listen: \"127.0.0.1:8090\"")).configuration
        #expect(configuration.upstreams.map(\.listen?.description) == ["127.0.0.1:8090"])
        #expect(configuration.upstreams[0].host.description.hasSuffix(".invalid"))
    }

    @Test(arguments: [
        ("kind: google, client: nobody", "there is no client \"nobody\""), ("client: api", "write `kind: google`"),
        ("kind: google", "name the `client`"), ("kind: aws, client: api", "belong together"),
        ("kind: google, client: cloud", "belong together"),
        ("kind: google, client: api, resources: [x]", "only Azure's programs"),
        ("kind: azure, client: api, project: x", "only Google's programs"),
        ("kind: google, client: api, authorization: {env: SECRET}", "send no secret"),
    ])
    func `a service that can't work is refused with what to write`(metadata: String, words: String) {
        let found = problems(text(metadata))
        #expect(found.contains { $0.contains(words) }, "\(found)")
    }

    @Test func `a client that is not exportable is refused`() {
        let found = problems(text("kind: google, client: api", exportable: false))
        #expect(found.contains { $0.contains("exportable: true") }, "\(found)")
    }

    @Test(arguments: [
        ("access_key_id: A", "write `secret_access_key` too"),
        ("web_identity_token: {env: SECRET}", "write `role_arn`"),
        ("role_arn: \"arn:aws:iam::1:role/x\"", "AWS needs `access_key_id`"),
        ("web_identity_token: {env: SECRET}, role_arn: x", "write the role's ARN"),
        ("access_key_id: A, secret_access_key: {env: SECRET}, external_id: x", "this belongs to `role_arn`"),
        ("access_key_id: A, secret_access_key: {env: SECRET}, scope: x", "leave it out"),
    ])
    func `keys of AWS that can't work are refused with what to write`(client: String, words: String) {
        let found = problems(text("kind: aws, client: cloud", client: client))
        #expect(found.contains { $0.contains(words) }, "\(found)")
    }
}
