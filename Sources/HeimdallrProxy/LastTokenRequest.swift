import CurlTransport
import Heimdallr
import Synchronization

/// Where one client's last request went, and why it failed where it did: what the log says of a token that did not come.
final class LastTokenRequest: Sendable {
    struct State {
        /// Without its query, which may hold what nobody should read.
        var url: String?
        /// In libcurl's own words.
        var cause: String?
    }

    private let state = Mutex(State())
    var current: State { state.withLock { $0 } }

    func began(_ url: String) {
        state.withLock { $0 = State(url: String(url.prefix { $0 != "?" && $0 != "#" })) }
    }

    func failed(_ error: TransportError) { state.withLock { $0.cause = "\(error)" } }
}

/// Notes it on the way.
struct NotingHTTPClient: HeimdallrHTTPClient {
    let client: any HeimdallrHTTPClient
    let last: LastTokenRequest

    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        last.began(request.url)
        return try await client.send(request)
    }
}
