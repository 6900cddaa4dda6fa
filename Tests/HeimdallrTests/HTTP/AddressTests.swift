import Testing

@testable import Heimdallr

@Suite struct `Addresses that documents and servers name` {
    @Test(
        "an address that two programs could read as two hosts gets no request, no token and no browser",
        arguments: [
            "https://a.example\\@evil.example/x", "https://a.example/\\evil.example", "https://user@a.example/x",
            "https://127.1/x", "https://0x7f.1/x", "https://a%2Eexample/x", "https://a..example/x",
            "https://[::1%25lo]/x", "https://[::1]evil.example/x", "https://a.example:0/x", "https://a.example:+1/x",
            "https://a.example:1:2/x", "https://\u{430}.example/x", "https://a.example/\u{7F}",
        ])
    func ambiguous(url: String) throws {
        var metadata = try ServerMetadata(Array(#"{"issuer":"https://a.example"}"#.utf8), issuer: "https://a.example")
        for endpoint in Endpoint.allCases {
            metadata.endpoints[endpoint] = url
            #expect(throws: DiscoveryFault.unusable(endpoint.rawValue)) {
                try metadata.url(endpoint, allowPlaintext: true)
            }
        }
        #expect(ServerMetadata.addresses(of: url).isEmpty)
        #expect(ResourceAddress.ofMetadata(of: url, challenged: nil).isEmpty)
        #expect(!ResourceAddress.covers(url, url))
        #expect(throws: LoginError.badRedirectURI) { try RedirectURI(url) }
        let escaped = url.replacing("\\", with: "\\\\")
        let device = #"{"device_code":"d","user_code":"u","verification_uri":"\#(escaped)","expires_in":1}"#
        #expect(DeviceAuthorization(Array(device.utf8)) == nil)
        #expect(ClientRegistration.redirectURIs(url) == [url])
        let members: [WritableKeyPath<HeimdallrConfiguration, String?>] = [
            \.tokenEndpoint, \.issuer, \.revocationEndpoint,
        ]
        for member in members {
            var configuration = HeimdallrConfiguration(tokenEndpoint: "https://a.example/token")
            configuration[keyPath: member] = url
            #expect(throws: HeimdallrConfigurationError.self) {
                try configuration.validate(grant: ClientCredentialsGrant())
            }
        }
    }

    @Test func `a redirect URI on loopback is registered with both names of this machine`() {
        for (uri, other) in [
            ("http://127.0.0.1:8081/a//localhost", "http://localhost:8081/a//localhost"),
            ("http://localhost", "http://127.0.0.1"),
            ("http://localhost/?x=//localhost", "http://127.0.0.1/?x=//localhost"),
        ] {
            #expect(ClientRegistration.redirectURIs(uri) == [uri, other])
        }
        for uri in ["http://[::1]:8081/a", "https://localhost/a", "app://localhost/", "http://localhost.example/"] {
            #expect(ClientRegistration.redirectURIs(uri) == [uri])
        }
    }
}
