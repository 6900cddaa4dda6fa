import Synchronization

/// Facts of the last request, for advice about a failure. Holds no secret. Any thread.
final class ExchangeTrace: Sendable {
    struct Facts: Sendable {
        /// Where the last request of the client's own went; without its query.
        var address: String?
        /// How the secret was written, where servers differ about it.
        var ambiguousEncoding: BasicEncoding?
    }

    private let state = Mutex(Facts())

    var facts: Facts { state.withLock { $0 } }

    func note(_ request: HeimdallrHTTPRequest) {
        let address = String(request.url.prefix { $0 != "?" })
        state.withLock { $0.address = address }
    }

    func note(_ request: TokenRequest) { state.withLock { $0.ambiguousEncoding = request.ambiguousEncoding } }
}
