import Proxy
import TestSupport
import Testing

/// An upstream's yes, without its blank line.
let agreement = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"

extension ProxyInProcess {
    /// With the upstream `ws.test`, signed by the client `api`, at `far`.
    static func upgrading(
        upstream: String = "", proxy: String = "", observer: ProxyObserver = ProxyObserver(), isLogged: Bool = false
    ) async throws -> (proxy: ProxyInProcess, far: RawListener) {
        let far = try RawListener()
        let proxy = try await ProxyInProcess(
            proxy: proxy,
            more: """
                - host: ws.test
                  url: http://127.0.0.1:\(far.port)
                  client: api
                  allow_plaintext: true
                \(upstream.indented(2))
                """, observer: observer, isLogged: isLogged)
        return (proxy, far)
    }

    /// Both ends of a handshake that the upstream has read.
    func askUpgrade(
        _ far: RawListener, receiveBuffer: Int32? = nil
    ) async throws -> (client: RawClient, far: RawClient) {
        let client = try await connect(receiveBuffer: receiveBuffer, sending: handshake())
        let end = try await far.accept()
        _ = try await end.read(until: "\r\n\r\n")
        return (client, end)
    }

    /// An upgraded connection's two ends.
    func openUpgrade(
        _ far: RawListener, receiveBuffer: Int32? = nil
    ) async throws -> (client: RawClient, far: RawClient) {
        let (client, end) = try await askUpgrade(far, receiveBuffer: receiveBuffer)
        try await end.send(agreement + "\r\n")
        #expect(try await client.response().status == 101)
        return (client, end)
    }
}

func handshake(
    _ url: String = "http://ws.test/chat?x=1", upgrade: String = "websocket", fields: [String] = []
) -> String {
    message(
        "GET", url,
        fields: [
            "Connection: keep-alive, Upgrade, X-Private", "Upgrade: \(upgrade)", "X-Private: 1",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
            "sec-websocket-protocol: chat, superchat",
        ] + fields)
}
