import Synchronization

/// Facts about the last request, for advice after a failure. Holds no secret. Any thread.
final class TokenRequestTrace: Sendable {
    struct Facts: Sendable {
        /// Address of the client's last request, without its query.
        var address: String?
        var endpoint = Endpoint.token
        /// Encoding of the request's Basic credentials, if another encoding would give other bytes.
        var ambiguousEncoding: BasicEncoding?
        /// Whether any answer was JSON.
        var hasAnsweredJSON = false
    }

    private let state = Mutex(Facts())

    var facts: Facts { state.withLock { $0 } }

    func noteJSON() { state.withLock { $0.hasAnsweredJSON = true } }

    func note(address url: String, of endpoint: Endpoint = .token) {
        let address = String(url.prefix { $0 != "?" })
        state.withLock { ($0.address, $0.endpoint) = (address, endpoint) }
    }

    func note(_ request: TokenRequest) { state.withLock { $0.ambiguousEncoding = request.ambiguousEncoding } }
}
