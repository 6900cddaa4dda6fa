import CurlTransport
import Reactor

/// One upstream's HTTP/2 connections, by origin. The upstream's `CarrierPool` makes them and limits their number.
/// Loop's thread only.
final class HTTP2Pool {
    struct Key: Hashable {
        let origin: Origin
        /// Whether HTTP/2 is used with prior knowledge instead of ALPN.
        let isKnown: Bool
    }

    let carriers: CarrierPool
    let buffers: UpstreamStreamPool
    let spares = SpareBuffers(limit: 8)
    private(set) var liveness: HTTP2Liveness
    private(set) var origins: [Key: HTTP2Origin] = [:]
    /// Cache of the last lookup: most upstreams have one origin.
    private var last: (key: Key, origin: HTTP2Origin)?

    init(_ carriers: CarrierPool, buffers: UpstreamStreamPool, liveness: HTTP2Liveness = HTTP2Liveness()) {
        self.carriers = carriers
        self.liveness = liveness
        self.liveness.probeWithin = min(liveness.probeWithin, carriers.options.connectTimeout / 2)
        self.buffers = buffers
    }

    deinit { for origin in origins.values { origin.abandon() } }

    var loop: EventLoop { buffers.loop }

    /// Returns the connections to an origin; `nil` if its server is known to lack HTTP/2.
    func origin(_ key: Key) -> HTTP2Origin? {
        if let last, last.key == key { return last.origin.lacksHTTP2 ? nil : last.origin }
        let origin = origins[key] ?? add(key)
        last = (key, origin)
        return origin.lacksHTTP2 ? nil : origin
    }

    /// Adds an origin. At `maxOrigins`, which a wildcard can reach, drops the unused origins. An unused origin only
    /// remembers that its server lacks HTTP/2.
    private func add(_ key: Key) -> HTTP2Origin {
        if origins.count >= Self.maxOrigins { origins = origins.filter { !$0.value.isUnused } }
        let origin = HTTP2Origin(key, in: self)
        origins[key] = origin
        return origin
    }

    private static let maxOrigins = 1000

    func remove(_ origin: HTTP2Origin) {
        origins[origin.key] = nil
        if last?.origin === origin { last = nil }
    }

    var waiting: Int { origins.values.reduce(0) { $0 + $1.waitingForStream } }
    var shortage: Int { origins.values.reduce(0) { $0 + $1.shortage } }
}
