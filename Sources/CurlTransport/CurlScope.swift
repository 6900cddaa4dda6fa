import CLibcurl
import Reactor

/// libcurl's state for the connections of one security domain: an engine, and the TLS sessions and addresses that no
/// other domain may use. Each handle holds its scope, and `CurlEngines` holds it for a time after the last connection.
/// Loop's thread only.
@safe final class CurlScope {
    let engine: CurlEngine
    /// Version of the TLS files at the time of making. libcurl knows files by their paths, and a path may return.
    let generation: UInt64
    /// The calls of one client. A pool limits its connections itself.
    let calls: RunningCalls
    private let share: OpaquePointerBox
    private weak var engines: CurlEngines?
    /// Whether the client or pool is gone. The scope then goes with its last connection.
    private var isLeft = false

    /// - Throws: `TransportError` when libcurl lacks memory.
    init(
        _ engine: CurlEngine, _ generation: UInt64, maxCalls: Int, among engines: CurlEngines
    ) throws(TransportError) {
        guard let share = unsafe curl_share_init() else {
            throw TransportError(.internal, message: "curl_share_init: out of memory")
        }
        self.engine = engine
        self.generation = generation
        self.engines = engines
        calls = RunningCalls(most: maxCalls)
        unsafe self.share = OpaquePointerBox(share)
        // One thread runs all handles, so no lock functions are needed.
        for data in [CURL_LOCK_DATA_SSL_SESSION, CURL_LOCK_DATA_DNS] {
            guard unsafe heimdallr_share_set_long(share, CURLSHOPT_SHARE, Int(data.rawValue)) == CURLSHE_OK
            else { throw TransportError(.internal, message: "CURLSHOPT_SHARE") }
        }
    }

    /// No easy handle is left, because each one holds this object.
    deinit { unsafe curl_share_cleanup(share.pointer) }

    func begin(_ handle: EasyHandle) throws(TransportError) {
        try unsafe handle.set(CURLOPT_SHARE, pointer: share.pointer)
        try engine.begin(handle)
        noteUse()
    }

    func end(_ handle: EasyHandle) {
        engine.remove(handle)
        noteUse()
    }

    private func noteUse() { if !isLeft { engines?.used(self) } }

    /// Lets the scope go with its last connection.
    func leave() {
        isLeft = true
        engines?.forget(self)
    }
}

/// The scope of one client or pool while it lasts, and a new one when one is needed. The scope goes with this object.
/// Loop's thread only.
final class CurrentScope {
    private weak var last: CurlScope?

    deinit { last?.leave() }

    /// Returns the scope, unless it has gone or its TLS files were replaced. `make` makes another one.
    func scope(
        _ options: PoolOptions, _ make: () throws(TransportError) -> CurlScope
    ) throws(TransportError) -> CurlScope {
        if let last, last.generation == options.trustGeneration { return last }
        last?.leave()
        let scope = try make()
        last = scope
        return scope
    }
}
