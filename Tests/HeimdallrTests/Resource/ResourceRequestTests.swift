import Heimdallr
import Testing

@Suite struct `A token on a request` {
    private let token = AccessToken(
        value: Secret("a+b/c="), issuedAt: .now, expiresAt: .now + .seconds(60))

    @Test("[61] a token goes into the Authorization header by default, in place of what was there")
    func authorizationHeader() {
        var request = HeimdallrHTTPRequest(
            url: "https://api.example.com/?a=b",
            headers: [
                HeimdallrHTTPField(name: "authorization", value: "Basic old"),
                HeimdallrHTTPField(name: "Accept", value: "*/*"),
                HeimdallrHTTPField(name: "AUTHORIZATION", value: "Digest old"),
            ])
        ResourceRequestAuthenticatorHTTPHeader().authenticate(&request, with: token)
        #expect(
            request.headers == [
                HeimdallrHTTPField(name: "Accept", value: "*/*"),
                HeimdallrHTTPField(name: "Authorization", value: "Bearer a+b/c="),
            ])
        #expect(request.url == "https://api.example.com/?a=b")
    }

    @Test("a token may go into another header, with another scheme or none")
    func otherHeader() {
        #expect(
            ResourceRequestAuthenticatorHTTPHeader(name: "X-Token", scheme: nil).credential(for: token)
                == .header(name: "X-Token", value: Secret("a+b/c=")))
        #expect(
            ResourceRequestAuthenticatorHTTPHeader(name: "X-Token", scheme: "Token").credential(for: token)
                == .header(name: "X-Token", value: Secret("Token a+b/c=")))
    }

    @Test(
        "a token in the query is escaped and replaces what was there; the rest stays byte for byte",
        arguments: [
            ("https://a/b", "https://a/b?access_token=a%2Bb%2Fc%3D"),
            ("https://a/b?", "https://a/b?access_token=a%2Bb%2Fc%3D"),
            ("https://a/b?x=%2f&&y", "https://a/b?x=%2f&&y&access_token=a%2Bb%2Fc%3D"),
            ("https://a/b?access_token=old&x=1#frag?y", "https://a/b?x=1&access_token=a%2Bb%2Fc%3D#frag?y"),
            ("https://a/b?access_token&my_access_token=1", "https://a/b?my_access_token=1&access_token=a%2Bb%2Fc%3D"),
        ])
    func query(url: String, expected: String) {
        var request = HeimdallrHTTPRequest(url: url)
        ResourceRequestAuthenticatorQueryParameter().authenticate(&request, with: token)
        #expect(request.url == expected)
        #expect(request.headers.isEmpty)
    }

    @Test("secrets, tokens, requests and answers print without what they hold")
    func nothingPrints() {
        let secret = Secret("hush-hush")
        let token = AccessToken(
            value: secret, issuedAt: .now, expiresAt: .now, refreshToken: secret,
            extra: ["id_token": .string("hush-hush")])
        let request = HeimdallrHTTPRequest(
            url: "https://a/?access_token=hush-hush",
            headers: [HeimdallrHTTPField(name: "Authorization", value: "hush-hush")],
            body: Array("hush-hush".utf8))
        let response = HeimdallrHTTPResponse(status: 200, headers: request.headers, body: request.body)
        let record = TokenRecord(
            revision: 1, accessToken: secret, issuedAt: 0, expiresAt: 0, refreshToken: secret,
            extra: ["id_token": .string("hush-hush")])
        let parsed = TokenResponse(accessToken: secret, tokenType: nil, extra: ["id_token": .string("hush-hush")])
        for value in [
            secret, token, request, response, record, parsed, RequestCredential.header(name: "A", value: secret),
            FormParameter("x", secret), TokenRequest(form: [FormParameter("x", secret)]),
        ] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(describing: value), String(reflecting: value), dumped] {
                #expect(!text.contains("hush"), "\(type(of: value))")
            }
        }
    }

    @Test("secrets compare by content")
    func secretsCompare() {
        #expect(Secret("a") == Secret("a"))
        #expect(Secret("a") != Secret("b"))
        #expect(Secret("") == Secret(""))
        #expect(Secret("aa") != Secret("a"))
        #expect(Secret("é").count == 2)
        #expect(Secret("é").revealed == "é")
    }
}
