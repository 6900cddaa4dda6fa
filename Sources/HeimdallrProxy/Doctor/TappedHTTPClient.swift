import Cryptography
import Heimdallr
import Synchronization
import WireText

/// What a client's servers have answered. Any thread.
final class Tap: Sendable {
    struct Answer: Sendable {
        var url: String
        var method: String
        var status: Int
        var date: String?
        var age: String?
        var type: String?
        /// Seconds since 1970-01-01T00:00:00Z, in the middle of the exchange.
        var at: Int64
    }

    private let state = Mutex((answers: [Answer](), document: [UInt8]?.none))

    var answers: [Answer] { state.withLock { $0.answers } }
    /// The metadata that came last.
    var document: JSONValue? { state.withLock { $0.document }.flatMap { try? JSONParser.parse($0) } }

    fileprivate func note(_ request: HeimdallrHTTPRequest, _ response: HeimdallrHTTPResponse, at: Int64) {
        func value(_ name: String) -> String? {
            response.headers.first { $0.name.lowercased() == name }?.value
        }
        let answer = Answer(
            url: String(request.url.prefix { $0 != "?" }), method: request.method, status: response.status,
            date: value("date"), age: value("age"), type: value("content-type"), at: at)
        // What a server publishes about itself holds no secret; nothing else of an answer is kept.
        let isMetadata =
            request.method == "GET" && request.url.contains("/.well-known/") && (200..<300).contains(response.status)
        let document = isMetadata ? response.body : nil
        state.withLock { state in
            state.answers.append(answer)
            if let document { state.document = document }
        }
    }
}

/// Lets a tap see what is answered.
struct TappedHTTPClient: HeimdallrHTTPClient {
    let client: any HeimdallrHTTPClient
    let tap: Tap

    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        let before = WallClock.now()
        let response = try await client.send(request)
        tap.note(request, response, at: (before + WallClock.now()) / 2)
        return response
    }
}
