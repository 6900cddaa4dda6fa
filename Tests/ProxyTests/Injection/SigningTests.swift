import FileSystem
import Foundation
import HTTPMessage
import Heimdallr
import SigV4
import TestSupport
import Testing

@testable import Proxy

@Suite("requests are signed for AWS as they go out", .stopsProxies, .timeLimit(.minutes(2)))
struct SigningTests {
    private func proxy(
        _ service: String = "execute-api", keys: String = "access_key_id: AKIDEXAMPLE, secret_access_key: s3cr3t/+",
        more: String = "", url: String = ""
    ) async throws -> ProxyInProcess {
        try await ProxyInProcess(
            more: """
                - host: aws.test
                  url: ORIGIN\(url)
                  allow_plaintext: true
                  inject: {sigv4: {region: eu-central-1, service: \(service), \(keys)}}
                \(more.indented(2))
                """)
    }

    /// The request, as botocore would sign it.
    private func expectSigned(
        _ request: RecordedRequest, _ proxy: ProxyInProcess, service: String = "execute-api", token: String? = nil,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async throws {
        let authorization = try #require(request.authorization.first, sourceLocation: sourceLocation)
        #expect(request.authorization.count == 1, sourceLocation: sourceLocation)
        let parts = authorization.split(separator: ", ")
        let names = parts[1].dropFirst("SignedHeaders=".count).split(separator: ";").map(String.init)
        let date = try #require(request.values("X-Amz-Date").first, sourceLocation: sourceLocation)
        #expect(
            parts[0]
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/\(date.prefix(8))/eu-central-1/\(service)/aws4_request",
            sourceLocation: sourceLocation)
        // Every field of Amazon's has to be signed.
        for field in request.fields where field.name.lowercased().hasPrefix("x-amz-") {
            #expect(names.contains(field.name.lowercased()), "\(field.name)", sourceLocation: sourceLocation)
        }
        #expect(request.values("X-Amz-Security-Token") == [token].compactMap(\.self), sourceLocation: sourceLocation)
        var their = Botocore.Request(
            service: service, method: request.method, url: proxy.origin.url + request.target,
            fields: request.fields.filter { names.contains($0.name.lowercased()) }.map { [$0.name, $0.value] },
            date: date)
        their.secret = "s3cr3t/+"
        their.region = "eu-central-1"
        their.body = String(decoding: request.body.map { UInt16($0) }, as: UTF16.self)
        #expect(
            try await Botocore.signatures([their]) == [String(parts[2].dropFirst("Signature=".count))],
            sourceLocation: sourceLocation)
    }

    @Test(arguments: [
        "/", "/a/../b//c?x=1&x=0&y&z=", "/p(1)/%2e%2E/%7e?q=a/b+c:d&&=&e=%c3%a9", "/?X-Amz-Signature=1&a=b",
    ])
    func `a signature fits whatever target the program asks for`(target: String) async throws {
        for service in ["execute-api", "s3"] {
            let proxy = try await proxy(service)
            let response = try await proxy.request(
                "GET", "http://aws.test" + target,
                fields: [
                    "X-Amz-Target: one", "X-Amz-Target:   two  words", "Content-Type: text/plain", "X-Other: 1",
                    "Authorization: AWS4-HMAC-SHA256 Credential=mine/x", "X-Amz-Date: 20000101T000000Z",
                    "X-Amz-Security-Token: mine", "Range: bytes=0-1",
                ])
            #expect(response.status == 200)
            let request = try #require(proxy.origin.requests.first)
            #expect(!request.target.contains("X-Amz-Signature"))
            try await expectSigned(request, proxy, service: service)
            #expect(request.values("X-Other") == ["1"])
        }
    }

    @Test func `a signature covers the session token and the url's path in front`() async throws {
        let proxy = try await proxy(
            keys: "credentials: {access_key_id: AKIDEXAMPLE, secret_access_key: s3cr3t/+, session_token: tok/en==}",
            url: "/stage")
        _ = try await proxy.request("DELETE", "http://aws.test/x")
        let request = try #require(proxy.origin.requests.first)
        #expect(request.target == "/stage/x")
        try await expectSigned(request, proxy, token: "tok/en==")
    }

    @Test func `edited fields are signed as they go out`() async throws {
        let proxy = try await proxy(
            "s3", more: "set_headers: {X-Amz-Meta-Team: blue, Content-Type: text/csv}\nremove_headers: X-Amz-Acl")
        _ = try await proxy.request(
            "PUT", "http://aws.test/x",
            fields: ["X-Amz-Meta-Team: red", "x-amz-acl: public-read", "content-type: text/html"], body: "a")
        let request = try #require(proxy.origin.requests.first)
        #expect(request.values("X-Amz-Meta-Team") == ["blue"] && request.values("Content-Type") == ["text/csv"])
        #expect(request.values("X-Amz-Acl") == [])
        try await expectSigned(request, proxy, service: "s3")
    }

    @Test func `a body that is at hand is signed with the head, whatever its framing`() async throws {
        for service in ["execute-api", "s3"] {
            let proxy = try await proxy(service)
            #expect(try await proxy.request("POST", "http://aws.test/x", body: "hello").status == 200)
            let chunked =
                "PUT http://aws.test/y HTTP/1.1\r\nHost: aws.test\r\nTransfer-Encoding: chunked\r\n\r\n"
                + "3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n"
            #expect(try await proxy.send(chunked, method: "PUT").status == 200)
            #expect(proxy.origin.requests.map(\.text) == ["hello", "hello"])
            for request in proxy.origin.requests { try await expectSigned(request, proxy, service: service) }
        }
    }

    @Test func `a body that comes slowly behind 100 Continue is signed, and its connection goes on`() async throws {
        let proxy = try await proxy()
        let client = try await proxy.connect(
            sending:
                "POST http://aws.test/x HTTP/1.1\r\nHost: aws.test\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\n"
        )
        #expect(try await client.response(to: "POST").status == 100)
        for byte in ["h", "e", "l", "l", "o"] {
            try await client.send(byte)
            try await client.isRead()
        }
        #expect(try await client.response(to: "POST").status == 200)
        try await client.send(message("GET", "http://aws.test/y"))
        #expect(try await client.response().status == 200)
        #expect(proxy.origin.requests.count == 2)
        for request in proxy.origin.requests { try await expectSigned(request, proxy) }
        #expect(proxy.origin.requests[0].values("Expect") == [])
    }

    @Test func `a body past max_replay_bytes is refused, unless its digest comes along`() async throws {
        let proxy = try await proxy(more: "max_replay_bytes: 1KiB")
        let body = String(repeating: "x", count: 2000)
        let long = try await proxy.request("POST", "http://aws.test/x", body: body)
        try expectProblem(long, "body-not-signable", upstream: "aws.test")
        let chunked =
            "PUT http://aws.test/y HTTP/1.1\r\nHost: aws.test\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "7D0\r\n\(body)\r\n0\r\n\r\n"
        try expectProblem(try await proxy.send(chunked, method: "PUT"), "body-not-signable", upstream: "aws.test")
        #expect(proxy.origin.requests.isEmpty)
        let digest = try PayloadDigest()
        try digest.update(Array(body.utf8).span)
        let named = String(decoding: try digest.finish(), as: UTF8.self)
        let response = try await proxy.request(
            "POST", "http://aws.test/x", fields: ["x-amz-content-sha256: \(named)"], body: body)
        #expect(response.status == 200)
        try await expectSigned(try #require(proxy.origin.requests.first), proxy)
    }

    @Test func `chunks that are signed with other keys are refused`() async throws {
        let proxy = try await proxy("s3")
        let response = try await proxy.request(
            "PUT", "http://aws.test/x", fields: ["X-Amz-Content-Sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD"], body: "x")
        try expectProblem(response, "signed-chunks", upstream: "aws.test")
    }

    @Test(
        arguments: [
            ("s3", true, "", SignedPayload.Verdict.known(PayloadDigest.unsigned)), ("s3", false, "", .read),
            ("execute-api", true, "", .read),
            (
                "s3", true, "STREAMING-UNSIGNED-PAYLOAD-TRAILER",
                .known(Array("STREAMING-UNSIGNED-PAYLOAD-TRAILER".utf8))
            ),
            ("s3", false, "UNSIGNED-PAYLOAD", .read), ("execute-api", true, "UNSIGNED-PAYLOAD", .read),
            ("s3", true, "nonsense", .known(PayloadDigest.unsigned)),
        ] as [(String, Bool, String, SignedPayload.Verdict)])
    func `only S3 over TLS takes bodies that are not signed`(
        service: String, isSecure: Bool, own: String, expected: SignedPayload.Verdict
    ) throws {
        let field = own.isEmpty ? "" : "X-Amz-Content-Sha256: \(own)\r\n"
        let text = Array("PUT /x HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\(field)\r\n".utf8)
        var head = RequestHead()
        _ = try head.parse(text.span, limits: HeadLimits(maxBytes: 4096, maxFields: 10))
        let signer = RequestSigner(region: "r", service: service)
        #expect(SignedPayload.judge(head, text.span, signer, isSecure: isSecure) == expected)
    }

    @Test func `a request that an SDK signed with the placeholder as access key is signed anew`() async throws {
        let proxy = try await proxy(more: "require_placeholder: DUMMYKEY")
        _ = try await proxy.request(
            "GET", "http://aws.test/",
            fields: [
                "Authorization: AWS4-HMAC-SHA256 Credential=DUMMYKEY/20260101/x/y/aws4_request, SignedHeaders=host"
            ])
        try await expectSigned(try #require(proxy.origin.requests.last), proxy)
        _ = try await proxy.request("GET", "http://aws.test/?X-Amz-Credential=DUMMYKEY%2Fx&X-Amz-Signature=1&a=b")
        let presigned = try #require(proxy.origin.requests.last)
        #expect(presigned.target == "/?a=b")
        try await expectSigned(presigned, proxy)
        _ = try await proxy.request("GET", "http://aws.test/", fields: ["Authorization: Bearer mine"])
        #expect(proxy.origin.requests.last?.authorization == ["Bearer mine"])
    }

    // MARK: Container credentials

    @Test func `container credentials are read from their answer, and asked for again before their end`() throws {
        func reading(_ text: String) throws -> FreshValue<SigningKeys>.Reading {
            try ContainerCredentials.reading(Secret(text), now: 1_767_225_600)
        }
        let keys = #""AccessKeyId": "AK", "SecretAccessKey": "s", "Token": "t""#
        let hour = try reading(#"{\#(keys), "Expiration": "2026-01-01T01:00:00Z"}"#)
        #expect(hour.again == .seconds(3300))
        #expect(hour.value.accessKeyID == Array("AK".utf8))
        #expect(try reading(#"{\#(keys), "Expiration": "2026-01-01T00:04:00.123Z"}"#).again == .seconds(120))
        #expect(try reading(#"{\#(keys), "Expiration": "2026-01-01T06:00:00+05:00"}"#).again == .seconds(3300))
        #expect(try reading("{\(keys)}").ends == nil)
        for bad in [
            "", "[]", "{}", #"{\#(keys), "Expiration": "tomorrow"}"#, #"{\#(keys), "Expiration": 1735689600}"#,
            #"{\#(keys), "Expiration": "2025-12-31T23:59:59Z"}"#,
            #"{"AccessKeyId": "A\r\nK", "SecretAccessKey": "s"}"#,
            #"{"AccessKeyId": "AK", "SecretAccessKey": "s", "Token": "a\nb"}"#,
        ] {
            #expect(throws: SecretProviderError.self, "\(bad)") { try reading(bad) }
        }
    }
}
