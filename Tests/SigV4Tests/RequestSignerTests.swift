import SigV4
import TestSupport
import Testing

@Suite("signatures are those of the published vectors and of botocore", .timeLimit(.minutes(1)))
struct RequestSignerTests {
    private let keys = SigningKeys(
        accessKeyID: Array("AKIDEXAMPLE".utf8), secret: Array("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".utf8).span,
        token: [UInt8]().span)

    private static func fields(_ pairs: [(String, String)]) -> [(name: [UInt8], value: [UInt8])] {
        pairs.map { (Array($0.0.utf8), Array($0.1.utf8)) }
    }

    private static func signature(_ authorization: [UInt8]) -> String {
        String(String(decoding: authorization, as: UTF8.self).split(separator: "Signature=").last ?? "")
    }

    /// Of the suite aws-sig-v4-test-suite.
    @Test(arguments: [
        ("GET", "/", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        (
            "GET", "/?Param2=value2&Param1=value1",
            "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500"
        ),
        ("POST", "/", "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b"),
        ("GET", "/./", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "//", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
        ("GET", "/foo/..", "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31"),
    ])
    func `a request gets the signature of the published vectors`(method: String, target: String, expected: String)
        throws
    {
        var request = RequestSigner.Request(
            method: Array(method.utf8), target: SignableTarget(Array(target.utf8).span), payload: PayloadDigest.empty,
            namesPayload: false)
        request.fields = Self.fields([("host", "example.amazonaws.com")])
        let value = try RequestSigner(region: "us-east-1", service: "service")
            .sign(request, with: keys, date: RequestSigner.date(1_440_938_160))
        #expect(
            String(decoding: value, as: UTF8.self)
                == "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/service/aws4_request, "
                + "SignedHeaders=host;x-amz-date, Signature=\(expected)")
    }

    /// Of the documentation of S3.
    @Test(arguments: [
        ("/test.txt", ["range": "bytes=0-9"], "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"),
        ("/?lifecycle", [:], "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"),
    ])
    func `a request to S3 gets the signature of the published vectors`(
        target: String, more: [String: String], expected: String
    ) throws {
        let keys = SigningKeys(
            accessKeyID: Array("AKIAIOSFODNN7EXAMPLE".utf8),
            secret: Array("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".utf8).span, token: [UInt8]().span)
        var request = RequestSigner.Request(
            method: Array("GET".utf8), target: SignableTarget(Array(target.utf8).span), payload: PayloadDigest.empty,
            namesPayload: true)
        request.fields = Self.fields([("host", "examplebucket.s3.amazonaws.com")] + more.map { ($0, $1) })
        let value = try RequestSigner(region: "us-east-1", service: "s3")
            .sign(request, with: keys, date: Array("20130524T000000Z".utf8))
        #expect(Self.signature(value) == expected)
    }

    @Test func `a target has one spelling in a signature`() {
        for (written, sent) in [
            ("", "/"), ("/a b", "/a%20b"), ("/a(b)'c*", "/a%28b%29%27c%2A"), ("/%7e%2f%41%2e", "/~%2FA%2E"),
            ("/%zz%", "/%25zz%25"), ("/a//b/./c/../d", "/a//b/./c/../d"), ("/\u{e9}", "/%C3%A9"), ("/a+b", "/a%2Bb"),
            ("/?", "/"), ("/?&&", "/"), ("/?=", "/"), ("/?a", "/?a"), ("/?a=", "/?a="), ("/?a==b", "/?a=%3Db"),
            ("/?b=1&&a=2&a=1", "/?b=1&a=2&a=1"), ("/?p=a/b:c", "/?p=a%2Fb%3Ac"), ("/?p=a+b%2b", "/?p=a%20b%2B"),
            ("/?a?b", "/?a%3Fb"), ("?x=1", "/?x=1"),
        ] {
            let target = SignableTarget(Array(written.utf8).span)
            #expect(String(decoding: target.text, as: UTF8.self) == sent)
            #expect(SignableTarget(target.text.span) == target)
        }
    }

    @Test func `botocore comes to the same for many odd requests`() async throws {
        var random = Rolling(state: 4711)
        let pieces = [
            "a", "Z9", "-._~", "%20", "%2F", "%2f", "%41", "%zz", "//", "/./", "/../", "(", "'", "*", "+", "=", ":",
            "@", ",",
            ";", "$", "!", "\u{e9}", "%25", "%2E", "/",
        ]
        let values = ["plain", "  two   spaces  ", "a,b", "\ttab\t", "", "x;y=z", "\"quoted  text\""]
        var theirs: [Botocore.Request] = []
        var ours: [String] = []
        for number in 0..<400 {
            func text(_ most: Int) -> String {
                (0..<random.next(most + 1)).map { _ in pieces[random.next(pieces.count)] }.joined()
            }
            let query = (0..<random.next(5)).map { _ in text(2) + ["", "=", "=\(text(3))"][random.next(3)] }
            let written = "/" + text(6) + (query.isEmpty ? "" : "?" + query.joined(separator: "&"))
            let target = SignableTarget(Array(written.utf8).span)
            let service = ["s3", "execute-api", "es", "sts"][random.next(4)]
            let method = ["GET", "POST", "PUT", "DELETE", "HEAD", "PATCH"][random.next(6)]
            let region = ["us-east-1", "eu-central-1"][random.next(2)]
            let token = number % 3 == 0 ? "token/\(number)+==" : ""
            let date = RequestSigner.date(1_700_000_000 + number * 50_000)
            let host = number % 5 == 0 ? "api.example.com:8443" : "api.example.com"
            let payload = service == "s3" && number % 2 == 0 ? PayloadDigest.unsigned : PayloadDigest.empty
            var pairs = [("host", host)]
            for name in ["content-type", "x-amz-meta-b", "x-amz-meta-a", "x-amz-meta-b"] where random.next(2) == 0 {
                pairs.append((name, values[random.next(values.count)]))
            }
            let signer = RequestSigner(region: region, service: service)
            var request = RequestSigner.Request(
                method: Array(method.utf8), target: target, payload: payload, namesPayload: signer.isStorage)
            request.fields = Self.fields(pairs)
            let keys = SigningKeys(
                accessKeyID: Array("AKIDEXAMPLE".utf8),
                secret: Array("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".utf8).span, token: Array(token.utf8).span)
            ours.append(Self.signature(try signer.sign(request, with: keys, date: date)))
            pairs.append(("X-Amz-Date", String(decoding: date, as: UTF8.self)))
            if signer.isStorage { pairs.append(("X-Amz-Content-SHA256", String(decoding: payload, as: UTF8.self))) }
            if !token.isEmpty { pairs.append(("X-Amz-Security-Token", token)) }
            var their = Botocore.Request(
                service: service, method: method,
                url: "https://\(host)" + String(decoding: target.text, as: UTF8.self),
                fields: pairs.map { [$0.0, $0.1] }, date: String(decoding: date, as: UTF8.self))
            their.region = region
            theirs.append(their)
        }
        let expected = try await Botocore.signatures(theirs)
        #expect(expected.count == ours.count)
        for index in ours.indices where ours[index] != expected[index] {
            Issue.record("\(theirs[index])")
        }
    }

    @Test func `a digest in pieces equals that of the whole`() throws {
        let digest = try PayloadDigest()
        #expect(try PayloadDigest().finish() == PayloadDigest.empty)
        for piece in ["ab", "", "c"] { try digest.update(Array(piece.utf8).span) }
        #expect(
            String(decoding: try digest.finish(), as: UTF8.self)
                == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
    }
}

/// Numbers that are the same in each run.
private struct Rolling {
    var state: UInt64

    mutating func next(_ bound: Int) -> Int {
        state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        return Int(state >> 33) % bound
    }
}
