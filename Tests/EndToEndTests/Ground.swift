import Foundation
import TestSupport

/// The token that the plain token endpoint of these tests gives out.
let token = "the-token-0123456789"

/// The secret of the client `api`.
let clientSecret = "client-secret-9876543210"

/// A token endpoint of the simplest kind, for tests whose promise is elsewhere.
func tokenEndpoint(
    _ answer: String = #"{"access_token":"\#(token)","token_type":"Bearer","expires_in":3600}"#, status: Int = 200
) throws -> RecordingOrigin {
    try RecordingOrigin {
        try $0.respond(
            status, fields: [("Content-Type", "application/json"), ("Cache-Control", "no-store")], body: answer)
    }
}

/// A configuration with one client, `api`.
/// - Parameters:
///   - proxy: further lines of the `proxy` section, one a line.
///   - upstreams: as `upstream` makes them.
///   - more: further top-level lines.
func configuration(
    listen port: UInt16 = 0, tokenEndpoint: String, client: String = "", proxy: String = "", upstreams: String...,
    more: String = ""
) -> Setup {
    Setup(
        text: """
            proxy:
              listen: 127.0.0.1:\(port)
            \(proxy.indented(2))
            clients:
              api:
                token_endpoint: \(tokenEndpoint)
                client_id: end-to-end
                client_secret: {file: FOLDER/secret}
                allow_plaintext: true
            \(client.indented(4))
            upstreams:
            \(upstreams.joined(separator: "\n"))
            \(more)
            """)
}

/// A configuration that wants the file `secret` beside it.
struct Setup: Sendable {
    var text: String
}

/// One entry of `upstreams`, signed by the client `api`, going to a loopback address over http or https.
func upstream(_ host: String = "api.test", url: String, more: String = "") -> String {
    """
      - host: \(host)
        url: \(url)
        client: api
    \(url.hasPrefix("http://") ? "    allow_plaintext: true" : "")
    \(more.indented(4))
    """
}

extension RunningProxy {
    /// With the file that `configuration` speaks of.
    convenience init(
        _ setup: Setup, environment: [String: String?] = [:], listeners: Int = 1, under wrapper: [String] = []
    ) async throws {
        try await self.init(
            setup.text, files: ["secret": clientSecret], environment: environment, listeners: listeners, under: wrapper)
    }
}

/// The `error` parameter of our own member of Proxy-Status (RFC 9209).
func proxyError(of response: RawResponse) -> String? {
    guard let status = response.field("Proxy-Status"), status.hasPrefix("heimdallr-proxy") else { return nil }
    for parameter in status.split(separator: ";").dropFirst() {
        let pair = parameter.split(separator: "=", maxSplits: 1).map { $0.trimmingPrefix(while: { $0 == " " }) }
        if pair.count == 2, pair[0] == "error" { return String(pair[1]) }
    }
    return nil
}

extension String {
    func indented(_ count: Int) -> String {
        split(separator: "\n").map { String(repeating: " ", count: count) + $0 }.joined(separator: "\n")
    }
}

extension String {
    var base64: String { Data(utf8).base64EncodedString() }
}

extension ChildProcess {
    /// The first line of a server that prints its port.
    func printedPort() async throws -> UInt16 {
        try await eventually("the server's port") {
            if ending != nil { throw TestFailure(transcript) }
            guard let end = output.firstIndex(of: "\n") else { return nil }
            return UInt16(output[..<end])
        }
    }
}
