import Foundation
import TestSupport
import Testing

@Suite("credentials of the machine's container service", .timeLimit(.minutes(2)))
struct ContainerCredentialsTests {
    private static func time(in seconds: Double) -> String {
        ISO8601DateFormatter().string(from: Date().addingTimeInterval(seconds))
    }

    private static func configuration(_ origin: RecordingOrigin) -> String {
        """
        proxy: {listen: 127.0.0.1:0}
        upstreams:
          - host: aws.test
            url: \(origin.url)
            allow_plaintext: true
            inject: {sigv4: {region: eu-central-1, service: execute-api, credentials: container}}
        """
    }

    @Test func `container credentials are fetched with the current token, renewed before their end, and sign requests`()
        async throws
    {
        let folder = try TemporaryDirectory()
        try folder.write("token-one\n", to: "token")
        let service = try RecordingOrigin { exchange in
            let number = exchange.head.values("Authorization") == ["token-one"] ? 1 : 2
            try exchange.respond(
                body: """
                    {"AccessKeyId": "AKID\(number)", "SecretAccessKey": "secret-Zk4711Zk-\(number)",
                     "Token": "session-\(number)==", "Expiration": "\(Self.time(in: number == 1 ? 8 : 3600))"}
                    """)
        }
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            Self.configuration(origin),
            environment: [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": service.url + "/v1/credentials?a=b",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": folder.path + "/token",
            ])
        #expect(try await proxy.get("http://aws.test/x").status == 200)
        #expect(service.requests.first?.target == "/v1/credentials?a=b")
        let first = try #require(origin.requests.last)
        #expect(first.values("X-Amz-Security-Token") == ["session-1=="])
        #expect(first.values("Authorization").first?.contains("Credential=AKID1/") == true)
        try folder.write("token-two\n", to: "token")
        try await eventually("the second session") {
            let response = try await proxy.get("http://aws.test/x")
            #expect(response.status == 200, "renewed too late: \(response.text)")
            return origin.requests.last?.values("X-Amz-Security-Token") == ["session-2=="]
        }
        #expect(!proxy.log.contains("Zk4711Zk") && !proxy.log.contains("session-"))
    }

    @Test func `without container credentials requests get a 503 that says so, and the log a line`() async throws {
        let service = try RecordingOrigin { try $0.respond(500) }
        let origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            Self.configuration(origin), environment: ["AWS_CONTAINER_CREDENTIALS_FULL_URI": service.url + "/"])
        let response = try await proxy.get("http://aws.test/x")
        #expect(response.status == 503 && response.text.contains("no-credential"))
        #expect(origin.requests.isEmpty)
        try await eventually("the log") { proxy.log.contains("the container credentials' endpoint answered 500") }
    }
}
