import CurlTransport
import Heimdallr
import Reports
import Synchronization

/// Where one client's last request went, and why it failed where it did: what the log, `status` and the page say of a
/// token that did not come. Stays until the next one has ended. Any thread.
final class TokenRequestNotes: Sendable {
    private let state = Mutex((ended: LastTokenRequest(), cause: String?.none))
    var current: LastTokenRequest { state.withLock { $0.ended } }

    fileprivate func ended(_ url: String, withAnswer: Bool) {
        state.withLock {
            $0.ended = LastTokenRequest(
                url: String(url.prefix { $0 != "?" && $0 != "#" }), cause: withAnswer ? nil : $0.cause)
            $0.cause = nil
        }
    }

    /// Called before the request ends.
    func failed(_ error: TransportError) { state.withLock { $0.cause = FailureCause.text(error) } }
}

/// Notes it on the way.
struct NotingHTTPClient: HeimdallrHTTPClient {
    let client: any HeimdallrHTTPClient
    let last: TokenRequestNotes

    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        do {
            let response = try await client.send(request)
            last.ended(request.url, withAnswer: true)
            return response
        } catch {
            last.ended(request.url, withAnswer: false)
            throw error
        }
    }
}
