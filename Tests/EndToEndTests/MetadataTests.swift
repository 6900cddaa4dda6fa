import TestSupport
import Testing

@Suite("metadata services, as the platforms' own libraries ask them", .timeLimit(.minutes(5)))
struct MetadataTests {
    private func proxy(_ metadata: String, client: String, listeners: Int = 1, files: [String: String] = [:])
        async throws
        -> RunningProxy
    {
        try await RunningProxy(
            """
            proxy: {listen: 127.0.0.1:0}
            clients:
              cloud:
                allow_plaintext: true
                exportable: true
            \(client.indented(4))
            metadata:
              - client: cloud
            \(metadata.indented(4))
            audit: {file: FOLDER/audit}
            """, files: files, listeners: listeners)
    }

    private func bearer(_ tokens: TokenEndpoint) -> String {
        """
        token_endpoint: \(tokens.url)
        client_id: proxy
        client_secret: {file: FOLDER/secret}
        """
    }

    /// Runs a library without variables of this machine's platforms.
    private func ask(_ kind: String, _ environment: [String: String?], folder: TemporaryDirectory) async throws
        -> String
    {
        let plain: [String: String?] = [
            "HOME": folder.path, "GOOGLE_APPLICATION_CREDENTIALS": nil, "AWS_ACCESS_KEY_ID": nil, "AWS_PROFILE": nil,
            "http_proxy": nil, "https_proxy": nil, "no_proxy": nil,
        ]
        return try await ChildProcess.output(
            of: [try Repository.python(), fixture("metadata_sdks.py"), kind],
            environment: plain.merging(environment) { $1 }, within: .seconds(120))
    }

    @Test(arguments: [true, false])
    func `google-auth gets the token, project and account, by its variables and by http_proxy alone`(byProxy: Bool)
        async throws
    {
        let tokens = try TokenEndpoint([.token("google-token-0123456789")])
        let folder = try TemporaryDirectory()
        let listen = byProxy ? "" : "\nlisten: 127.0.0.1:0"
        let proxy = try await proxy(
            "kind: google\nproject: blue\nemail: robot@blue.test\(listen)", client: bearer(tokens),
            listeners: byProxy ? 1 : 2, files: ["secret": "s"])
        let host = byProxy ? "" : "127.0.0.1:\(proxy.upstreamPort)"
        let environment: [String: String?] =
            byProxy ? ["http_proxy": proxy.url] : ["GCE_METADATA_HOST": host, "GCE_METADATA_IP": host]
        let output = try await ask("google", environment, folder: folder)
        #expect(output == "google-token-0123456789 blue robot@blue.test\n", "\(proxy.log)")
        try await eventually("the audit has the token") {
            try proxy.directory.read("audit").contains(#""audit":"exported""#)
        }
        #expect(try !proxy.directory.read("audit").contains("google-token") && !proxy.log.contains("google-token"))
    }

    @Test(arguments: ["azure", "azure-app-service"])
    func `azure-identity gets the token of the resource that it names, and no other`(kind: String) async throws {
        let tokens = try TokenEndpoint([.token("azure-token-0123456789")])
        let folder = try TemporaryDirectory()
        let isService = kind == "azure-app-service"
        let more = isService ? "\nlisten: 127.0.0.1:0\nauthorization: {file: FOLDER/header}" : ""
        let proxy = try await proxy(
            "kind: azure\nresources: https://api.test/\(more)", client: bearer(tokens), listeners: isService ? 2 : 1,
            files: ["secret": "s", "header": "app-service-header"])
        var environment: [String: String?] = ["http_proxy": proxy.url]
        if isService {
            environment = [
                "IDENTITY_ENDPOINT": "http://127.0.0.1:\(proxy.upstreamPort)/msi/token",
                "IDENTITY_HEADER": "app-service-header",
            ]
        }
        #expect(try await ask(kind, environment, folder: folder) == "azure-token-0123456789\n", "\(proxy.log)")
        environment["SCOPE"] = "https://other.test/.default"
        let refused = try? await ask(kind, environment, folder: folder)
        #expect(refused == nil)
    }

    @Test(arguments: ["aws-instance", "aws-container"])
    func `botocore gets keys that the proxy has from a real signature at STS`(kind: String) async throws {
        let sts = try ChildProcess([try Repository.python(), fixture("sts.py")])
        let port = try await sts.printedPort()
        let folder = try TemporaryDirectory()
        let isContainer = kind == "aws-container"
        let more = isContainer ? "\nlisten: 127.0.0.1:0\nauthorization: {file: FOLDER/header}" : ""
        let client = """
            grant_type: aws
            token_endpoint: http://127.0.0.1:\(port)/
            region: eu-west-1
            access_key_id: AKIDTEST
            secret_access_key: {file: FOLDER/secret}
            role_arn: arn:aws:iam::1:role/reader
            external_id: x&y
            """
        let proxy = try await proxy(
            "kind: aws\(more)", client: client, listeners: isContainer ? 2 : 1,
            files: ["secret": "signing-secret", "header": "container-secret"])
        var environment: [String: String?] = ["http_proxy": proxy.url]
        if isContainer {
            environment = [
                "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://127.0.0.1:\(proxy.upstreamPort)/keys",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN": "container-secret",
            ]
        }
        let output = try await ask(kind, environment, folder: folder)
        #expect(output == "ASIA1 secret/1 session/1+token=\n", "\(proxy.log)\(sts.output)")
        #expect(sts.output.contains("issued AssumeRole heimdallr\n"))
    }

    @Test(arguments: [
        ["Metadata-Flavor: Google", "X-Forwarded-For: 10.0.0.1"],
        ["Metadata-Flavor: Google", "Origin: http://evil.test"],
        ["Metadata-Flavor: Google", "Sec-Fetch-Site: none"], ["Metadata-Flavor: Google", "User-Agent: Mozilla Gecko"],
        ["Metadata-Flavor: Google", "Host: evil.test"], [],
    ])
    func `a hostile caller gets no token`(fields: [String]) async throws {
        let tokens = try TokenEndpoint([.token("google-token-0123456789")])
        let proxy = try await proxy(
            "kind: google\nlisten: 127.0.0.1:0", client: bearer(tokens), listeners: 2, files: ["secret": "s"])
        let url =
            "http://127.0.0.1:\(proxy.upstreamPort)/computeMetadata/v1/instance/service-accounts/default/token"
        let output = try await ChildProcess.output(
            of: ["curl", "-s", "--noproxy", "*", "-w", "%{http_code}", url] + fields.flatMap { ["-H", $0] })
        #expect(output.hasSuffix("403") && !output.contains("google-token"), "\(output)")
    }

    @Test func `without a token each library shows the cause`() async throws {
        let tokens = try TokenEndpoint([.error("invalid_client", status: 401)])
        let proxy = try await proxy(
            "kind: google\nlisten: 127.0.0.1:0", client: bearer(tokens), listeners: 2, files: ["secret": "s"])
        let url =
            "http://127.0.0.1:\(proxy.upstreamPort)/computeMetadata/v1/instance/service-accounts/default/token"
        let output = try await ChildProcess.output(
            of: ["curl", "-s", "-i", "--noproxy", "*", "-H", "Metadata-Flavor: Google", url])
        #expect(output.hasPrefix("HTTP/1.1 404 ") && output.contains("Metadata-Flavor: Google"), "\(output)")
        #expect(output.contains("client"), "\(output)")
    }
}
