import Reports
import WireText

extension RecentRequest {
    /// One request, for programs. Times are in UTC.
    var json: JSON {
        var members: [JSON.Member] = [
            .init("id", .string(id)), .init("time", .string(time)), .init("method", .string(method)),
            .init("host", .string(host)), .init("path", .string(path)), .init("status", .number(status)),
            .init("milliseconds", .decimal(duration / .milliseconds(1))),
        ]
        let texts = [
            ("caller", caller), ("program", program), ("upstream", upstream),
            ("rule", rule.map { "upstreams[\($0)]" }), ("client", client), ("reason", reason), ("cause", cause),
            ("what_to_do", remedy),
        ]
        members += texts.compactMap { name, text in text.map { .init(name, .string($0)) } }
        return .object(members)
    }

    private var time: String {
        var text: [UInt8] = []
        RFC3339.append(Int(endedAt / 1000), milliseconds: Int(endedAt % 1000), to: &text)
        return String(decoding: text, as: UTF8.self)
    }

    /// The lines of `why ID`.
    var text: String {
        let facts: [(String, String?)] = [
            ("request", "\(method) \(host)\(path)"), ("ended", time),
            ("took", "\(Int(duration / .milliseconds(1))) ms"),
            ("caller", caller), ("program", program), ("rule", rule.map { "upstreams[\($0)] (\(upstream ?? ""))" }),
            ("client", client), ("answer", status == 0 ? "cut" : "\(status)\(isRefused ? " by the proxy itself" : "")"),
            ("reason", reason), ("cause", cause), ("what to do", remedy),
        ]
        return facts.compactMap { name, text in
            text.map { name + String(repeating: " ", count: 13 - name.count) + $0 + "\n" }
        }.joined()
    }

    /// Whether the proxy answered the request itself.
    var isRefused: Bool { reason != nil }
}

extension RecentRequests {
    /// The requests, and in `next` the value of `after` for the requests that follow.
    var json: JSON {
        .object([
            .init("requests", .array(requests.map(\.json))), .init("next", .string(cursor)),
            .init("missed", .number(Int(clamping: missed))),
        ])
    }

    var cursor: String { counts.map(String.init).joined(separator: "-") }

    /// The counts that `cursor` names; empty for another text.
    static func counts(_ cursor: String?) -> [UInt64] {
        let parts = (cursor ?? "").prefix(4096).split(separator: "-").map { UInt64($0) }
        return parts.contains(nil) ? [] : parts.compactMap { $0 }
    }
}
