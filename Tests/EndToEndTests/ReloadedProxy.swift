import Foundation
import TestSupport
import Testing

/// Token endpoint, origin and proxy; the proxy's file can be written anew.
struct ReloadedProxy {
    let endpoint: RecordingOrigin
    let origin: RecordingOrigin
    let proxy: RunningProxy

    /// - Parameters:
    ///   - listen: further addresses of `proxy.listen`.
    ///   - clients: further entries, and so on.
    static func text(
        _ endpoint: RecordingOrigin, _ origin: RecordingOrigin, proxy: String = "", client: String = "",
        clients: String = "", upstreams: String = "", more: String = ""
    ) -> String {
        """
        proxy:
          listen: 127.0.0.1:0
        \(proxy.indented(2))
        admin: {listen: "127.0.0.1:0", socket: FOLDER/admin.sock}
        clients:
          api:
            token_endpoint: \(endpoint.url)
            client_id: end-to-end
            client_secret: {file: FOLDER/secret}
            allow_plaintext: true
        \(client.indented(4))
        \(clients.indented(2))
        upstreams:
        \(ProxyConfiguration.upstream(url: origin.url))
        \(upstreams)
        \(more)
        """
    }

    static func tokenEndpoint() throws -> RecordingOrigin {
        try RecordingOrigin {
            try $0.respond(
                200, fields: [("Content-Type", "application/json"), ("Cache-Control", "no-store")],
                body: #"{"access_token":"\#(TokenEndpoint.plainToken)","token_type":"Bearer","expires_in":3600}"#)
        }
    }

    init(client: String = "", upstreams: String = "") async throws {
        endpoint = try Self.tokenEndpoint()
        origin = try RecordingOrigin()
        proxy = try await RunningProxy(
            Self.text(endpoint, origin, client: client, upstreams: upstreams), files: ["secret": clientSecret])
    }

    func write(
        proxy settings: String = "", client: String = "", clients: String = "", upstreams: String = "",
        more: String = ""
    ) throws {
        let text = Self.text(
            endpoint, origin, proxy: settings, client: client, clients: clients, upstreams: upstreams, more: more)
        try write(text: text)
    }

    func write(text: String) throws {
        try proxy.directory.write(text.replacing("FOLDER", with: proxy.directory.path), to: "config.yaml")
    }

    /// The command to its end.
    @discardableResult
    func reload(expecting ending: ChildProcess.Ending = .exited(0)) async throws -> ChildProcess {
        let command = try await RunningProxy.run(["reload", "--config", proxy.directory.path + "/config.yaml"])
        #expect(command.ending == ending, "\(command.transcript)\n\(proxy.log)")
        return command
    }

    func status(_ url: String = "http://api.test/x") async throws -> Int { try await proxy.get(url).status }

    func metrics() async throws -> String {
        let page = try #require(proxy.log.firstMatch(of: /administration address=(\S+)/)?.1)
        let port = try #require(UInt16(page.split(separator: ":").last ?? ""))
        return try await RawClient.exchange(
            port: port, "GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n"
        ).text
    }
}
