import Heimdallr
import Synchronization

/// Collects facts about the answers that an OAuth client gets. Keeps no body. Any thread.
final class Tap: Sendable {
    struct Answer: Sendable {
        var url: String
        var method: String
        var status: Int
        var date: String?
        var age: String?
        /// Content type of a page or of plain text. Other values are not kept, because they could hold a secret.
        var pageType: String?
        /// Time in the middle between request and answer, in seconds since 1970-01-01T00:00:00Z.
        var at: Int64
    }

    private let state = Mutex([Answer]())

    var answers: [Answer] { state.withLock { $0 } }

    func note(_ request: HeimdallrHTTPRequest, _ response: HeimdallrHTTPResponse, at: Int64) {
        func value(_ name: String) -> String? { response.headers.first { $0.name.lowercased() == name }?.value }
        let answer = Answer(
            url: String(request.url.prefix { $0 != "?" }), method: request.method, status: response.status,
            date: value("date"), age: value("age"), pageType: value("content-type").flatMap(Self.pageType), at: at)
        state.withLock { $0.append(answer) }
    }

    private static func pageType(_ field: String) -> String? {
        ["text/html", "text/plain", "text/xml", "application/xml"].first { field.lowercased().hasPrefix($0) }
    }
}
