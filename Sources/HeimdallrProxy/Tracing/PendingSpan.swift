import CurlTransport
import Heimdallr
import HeimdallrCurl
import Proxy
import Reactor
import Tracing

/// A span that waits to be sent. It is spelled out when that happens, not on the loop that it came from.
enum PendingSpan: Sendable {
    case exchange(ExchangeSpan)
    case other(TraceSpan)

    var traceSpan: TraceSpan {
        switch self {
        case .exchange(let span): span.traceSpan
        case .other(let span): span
        }
    }

    /// What it takes of memory, more or less.
    var size: Int {
        switch self {
        case .exchange(let span): span.size
        case .other: 1024
        }
    }
}

extension TraceSpan {
    /// Of a token request that has just ended.
    /// - Parameter url: where it went; `nil`: nowhere. Its path is not shown: some tell who asks.
    init(_ mark: TraceMark, _ report: TokenRequestReport, url: String?, status: Int?) {
        let end = WallTime.now
        self.init(
            mark, "token request", .client, start: (end - report.duration).sinceEpoch, end: end.sinceEpoch)
        attributes = [
            .init("heimdallr.client", .text(report.client)), .init("heimdallr.grant_type", .text(report.grantType)),
            .init("heimdallr.result", .text(report.result.rawValue)),
        ]
        if report.result != .notSent, let (origin, _) = url.flatMap({ CurlHTTPClient.split($0) }) {
            let host = origin.host
            let address = host.hasPrefix("[") && host.hasSuffix("]") ? String(host.dropFirst().dropLast()) : host
            attributes.append(.init("url.scheme", .text(origin.scheme.rawValue)))
            attributes.append(.init("server.address", .text(address)))
            attributes.append(.init("server.port", .number(Int64(origin.port))))
            if let status { attributes.append(.init("http.response.status_code", .number(Int64(status)))) }
        }
        guard report.result != .success else { return }
        attributes.append(.init("error.type", .text(report.result.rawValue)))
        isError = true
    }
}
