import Cryptography
import CurlTransport
import Heimdallr
import Reports
import Synchronization

/// The URL and the failure of one client's last request, for the log, `status` and the page. Kept until the next
/// request has ended. Any thread.
final class TokenRequestNotes: Sendable {
    private let state = Mutex((ended: LastTokenRequest(), cause: String?.none, status: Int?.none))
    var current: LastTokenRequest { state.withLock { $0.ended } }
    /// Status of its answer.
    var status: Int? { state.withLock { $0.status } }

    fileprivate func ended(_ url: String, status: Int?) {
        let withAnswer = status != nil
        state.withLock {
            $0.status = status
            $0.ended = LastTokenRequest(
                url: String(url.prefix { $0 != "?" && $0 != "#" }), cause: withAnswer ? nil : $0.cause)
            $0.cause = nil
        }
    }

    /// Called before the request ends.
    func failed(_ error: TransportError) { state.withLock { $0.cause = FailureCause.text(error) } }
}

/// An HTTP client that notes each request.
struct NotingHTTPClient: HeimdallrHTTPClient {
    let client: any HeimdallrHTTPClient
    let last: TokenRequestNotes
    /// Receives a copy of the answers.
    var tap: Tap?

    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        let before = WallClock.now()
        do {
            let response = try await client.send(request)
            tap?.note(request, response, at: (before + WallClock.now()) / 2)
            last.ended(request.url, status: response.status)
            return response
        } catch {
            last.ended(request.url, status: nil)
            throw error
        }
    }
}
