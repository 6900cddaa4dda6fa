import Testing

@testable import Proxy

@Suite struct `Requests for an API's metadata` {
    private func isMetadata(_ path: String) -> Bool { Discovery.isMetadata(Array(path.utf8).span) }

    @Test(
        "each spelling that a server could take for the metadata's path is found",
        arguments: [
            "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/",
            "/.well-known/oauth-protected-resource/mcp", "/.well-known/oauth-protected-resource?a",
            "/.well-known/%6Fauth-protected-resource", "/.well-known/%6fauth-protected-resource",
            "/%2ewell-known/oauth%2Dprotected%2dresource", "//.well-known/oauth-protected-resource",
            "/.well-known//oauth-protected-resource", "/.WELL-KNOWN/OAuth-Protected-Resource",
            "/x/../.well-known/oauth-protected-resource", "/x/%2e%2E/.well-known/oauth-protected-resource",
            "/../.well-known/oauth-protected-resource", "/./.well-known/./oauth-protected-resource",
            "/.well-known/x/../oauth-protected-resource", "/x/y/..;a/../.well-known/oauth-protected-resource",
            "/.well-known/oauth-protected-resource;x", "/.well-known;a=b/oauth-protected-resource;x/mcp",
            "/.well-known/oauth-protected-resource%2Fmcp", "/.well-known%2foauth-protected-resource",
            "/.well-known\\oauth-protected-resource", "/.well-known/oauth-protected-resource/../x",
            "/.well-known//../oauth-protected-resource", "/.well-known//%2e%2e/oauth-protected-resource",
            "/.well-known/;x/../oauth-protected-resource", "/.well-known/%2f/../oauth-protected-resource",
            "/x//../.well-known/oauth-protected-resource", "/x/.well-known/y/oauth-protected-resource/..",
        ])
    func spellings(_ path: String) { #expect(isMetadata(path)) }

    @Test(
        "a path that no server takes for the metadata's is left alone",
        arguments: [
            "", "/", "/mcp", "/.well-known/oauth-protected-resources", "/.well-known/oauth-protected-resourc",
            "/.well-known/oauth-authorization-server", "/.well-known/openid-configuration/and/a/long/path",
            "/x/.well-known/oauth-protected-resource", "/oauth-protected-resource/../.well-known",
            "/.well-known/x/oauth-protected-resource",
            "/search?q=/.well-known/oauth-protected-resource", "/mcp?/../.well-known/oauth-protected-resource",
            "/.well-known/../.well-known-oauth-protected-resource", "/.well-known/%256Fauth-protected-resource",
            "/.well-known/oauth-protected-resource%zz", "/.well-known/oauth-protected-resource%2",
            "/%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%%",
            "/.well-known/.oauth-protected-resource/x", "/.well-known/oauth-protected-resource%3Fa",
        ])
    func others(_ path: String) { #expect(!isMetadata(path)) }
}
