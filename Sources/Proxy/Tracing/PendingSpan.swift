import CurlTransport
import HTTPMessage
import Heimdallr
import Reactor

/// A span that waits to be sent. It is converted at sending, not on the loop that recorded it.
enum PendingSpan: Sendable {
    case exchange(ExchangeSpan)
    case other(TraceSpan)

    var traceSpan: TraceSpan {
        switch self {
        case .exchange(let span): span.traceSpan
        case .other(let span): span
        }
    }

    /// Approximate memory in bytes.
    var size: Int {
        switch self {
        case .exchange(let span): span.size
        case .other: 1024
        }
    }
}

extension TraceSpan {
    /// Creates the span of a token request that has just ended.
    /// - Parameter origin: origin of the token endpoint. The span omits the path, which may identify the caller.
    init(_ context: SpanContext, _ report: TokenRequestReport, origin: Origin?, status: Int?) {
        let end = WallTime.now
        self.init(
            context, "token request", .client, start: (end - report.duration).sinceEpoch, end: end.sinceEpoch)
        attributes = [
            .init("heimdallr.client", .text(report.client)), .init("heimdallr.grant_type", .text(report.grantType)),
            .init("heimdallr.result", .text(report.result.rawValue)),
        ]
        if report.result != .notSent, let origin {
            add("url.scheme", .text(origin.scheme.rawValue))
            addServer(origin.host, origin.port)
            add("http.response.status_code", status.map { .number(Int64($0)) })
        }
        guard report.result != .success else { return }
        add("error.type", .text(report.result.rawValue))
        isError = true
    }
}
