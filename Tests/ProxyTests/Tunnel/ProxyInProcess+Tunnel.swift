import Proxy
import TestSupport
import Testing

extension ProxyInProcess {
    /// With `connect: tunnel` to these places.
    static func tunnelling(
        _ tunnels: String, proxy: String = "", more: String = "", observer: ProxyObserver = ProxyObserver(),
        isLogged: Bool = false
    ) async throws -> ProxyInProcess {
        try await ProxyInProcess(
            proxy: "connect: tunnel\ntunnels: [\(tunnels)]\n\(proxy)", more: more,
            observer: observer, isLogged: isLogged)
    }

    /// A tunnel to `far`, and its two ends.
    func openTunnel(
        to far: RawListener, receiveBuffer: Int32? = nil
    ) async throws -> (client: RawClient, far: RawClient) {
        let client = try await connect(receiveBuffer: receiveBuffer)
        try await client.send(connectRequest("127.0.0.1:\(far.port)"))
        async let accepted = far.accept()
        let response = try await client.response(to: "CONNECT")
        #expect(response.status == 200)
        #expect(response.fields.isEmpty)
        return (client, try await accepted)
    }
}

func connectRequest(_ authority: String, fields: String = "") -> String {
    "CONNECT \(authority) HTTP/1.1\r\nHost: \(authority)\r\n\(fields)\r\n"
}

/// Bytes of which no two stretches of a pipe's size are the same.
func pattern(_ count: Int, step: Int) -> [UInt8] {
    var bytes = (0..<65_521).map { UInt8(truncatingIfNeeded: $0 &* step &+ $0 >> 8) }
    while bytes.count < count { bytes += bytes }
    return Array(bytes.prefix(count))
}
