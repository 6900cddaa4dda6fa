import Proxy
import Reports
import TestSupport
import Testing

/// A proxy that lets bytes through, and the listener behind it: by a tunnel (CONNECT), or by an upgraded connection.
struct BytePipe {
    enum Kind: CaseIterable, Sendable {
        case tunnel, upgrade

        /// As the metrics name it.
        var upstream: String { self == .tunnel ? "(tunnels)" : "ws.test" }
        /// Of the answer that opens it.
        var status: Int { self == .tunnel ? 200 : 101 }
    }

    let kind: Kind
    let proxy: ProxyInProcess
    let far: RawListener

    /// - Parameter idleTimeout: after which it ends if nothing moves.
    init(
        _ kind: Kind, idleTimeout: String? = nil, observer: ProxyObserver = ProxyObserver(), isLogged: Bool = false
    ) async throws {
        self.kind = kind
        let lines = idleTimeout.map { "idle_timeout: \($0)" } ?? ""
        switch kind {
        case .tunnel:
            far = try RawListener()
            proxy = try await ProxyInProcess.tunnelling(
                "127.0.0.1:\(far.port)", proxy: lines, observer: observer, isLogged: isLogged)
        case .upgrade:
            (proxy, far) = try await ProxyInProcess.upgrading(upstream: lines, observer: observer, isLogged: isLogged)
        }
    }

    /// An open one's two ends.
    func open(receiveBuffer: Int32? = nil) async throws -> (client: RawClient, far: RawClient) {
        switch kind {
        case .tunnel: try await proxy.openTunnel(to: far, receiveBuffer: receiveBuffer)
        case .upgrade: try await proxy.openUpgrade(far, receiveBuffer: receiveBuffer)
        }
    }

    /// Its metrics.
    func traffic() async throws -> UpstreamTraffic {
        try #require(await proxy.server.traffic().upstreams.first { $0.name == kind.upstream })
    }

    /// How many are open.
    var inFlight: Int { get async { await proxy.server.traffic().inFlight } }
}

extension ProxyInProcess {
    /// Waits until nothing is under way.
    func isOver(within limit: Duration = .seconds(20)) async throws {
        try await eventually("nothing is under way", within: limit) { await self.server.traffic().inFlight == 0 }
    }
}
