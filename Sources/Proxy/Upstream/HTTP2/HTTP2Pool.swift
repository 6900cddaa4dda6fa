import CurlTransport
import Reactor

/// One upstream's connections with HTTP/2, by origin. They are carriers of its pool, which bounds their number. Loop's
/// thread only.
final class HTTP2Pool {
    struct Key: Hashable {
        let origin: Origin
        /// Prior knowledge, instead of ALPN.
        let isKnown: Bool
    }

    let carriers: CarrierPool
    let buffers: ExchangePool
    let spares = SpareBuffers(limit: 8)
    private(set) var liveness: HTTP2Liveness
    private var origins: [Key: HTTP2Origin] = [:]
    /// Most upstreams have one origin.
    private var last: (key: Key, origin: HTTP2Origin)?

    init(_ carriers: CarrierPool, buffers: ExchangePool, liveness: HTTP2Liveness = HTTP2Liveness()) {
        self.carriers = carriers
        self.liveness = liveness
        self.liveness.probeWithin = min(liveness.probeWithin, carriers.options.connectTimeout / 2)
        self.buffers = buffers
    }

    deinit { for origin in origins.values { origin.abandon() } }

    var loop: EventLoop { buffers.loop }

    /// - Returns: `nil` if the server is known to lack HTTP/2.
    func origin(_ key: Key) -> HTTP2Origin? {
        if let last, last.key == key { return last.origin.lacksHTTP2 ? nil : last.origin }
        let origin = origins[key] ?? HTTP2Origin(key.origin, key.isKnown ? .knownHTTP2 : .http2, in: self)
        origins[key] = origin
        last = (key, origin)
        return origin.lacksHTTP2 ? nil : origin
    }

    func remove(_ origin: HTTP2Origin) {
        origins[origin.key] = nil
        if last?.origin === origin { last = nil }
    }

    /// Number of requests that wait for a stream, beside the dials in the queue of carriers.
    var waiting: Int { origins.values.reduce(0) { $0 + max(0, $1.waitingCount - $1.queuedDials) } }

    var shortage: Int { origins.values.reduce(0) { $0 + $1.shortage } }
}
