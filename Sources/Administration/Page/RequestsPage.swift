import HTML
import Reports

/// The page `/requests`: a row for each of the last requests, the newest first.
struct RequestsPage {
    let requests: [RecentRequest]

    var html: HTML {
        PageLayout(title: "Last requests", kind: "requests", reload: 5).page(
            """
            <div class="sheet">
            <header class="top"><div><h1>Last requests</h1>
            <p class="sub">Of all programs. <a href="/">Clients and upstreams</a></p></div></header>
            <main id="content" tabindex="-1"><div id="live">
            \(alreadyHTML: live)
            </div></main>
            </div>
            """)
    }

    /// The content that the script updates.
    var live: HTML {
        guard !requests.isEmpty else { return "<p class=\"empty\">No request has ended yet.</p>" }
        return """
            <table class="cards requests" role="table">
            <caption class="unseen">The last requests, the newest first</caption>
            <thead role="rowgroup"><tr role="row">
            <th role="columnheader" scope="col">Request</th>
            <th role="columnheader" scope="col">Program</th>
            <th role="columnheader" scope="col">Client</th>
            <th role="columnheader" scope="col">Answer</th>
            <th role="columnheader" scope="col" class="number">Time</th>
            </tr></thead>
            <tbody role="rowgroup">
            \(alreadyHTML: requests.reversed().map(Self.row))
            </tbody>
            </table>
            """
    }

    private static func row(_ request: RecentRequest) -> HTML {
        let programs = [request.caller, request.program].compactMap { $0 }
        return """
            <tr role="row" class="\(request.isRefused ? "failing" : "")">
            <th role="rowheader" scope="row" translate="no"><span class="url">\(request.method) \
            \(request.host)\(request.path)</span> <span class="minor">\(request.id)</span></th>
            <td role="cell" data-label="Program" translate="no"><span class="who">\(programs.joined(separator: ", "))</span></td>
            <td role="cell" data-label="Client" translate="no">\(request.client ?? "–")</td>
            <td role="cell" data-label="Answer">\(alreadyHTML: answer(request))</td>
            <td role="cell" data-label="Time" class="number">\(words(request.duration))</td>
            </tr>

            """
    }

    private static func answer(_ request: RecentRequest) -> HTML {
        let status = request.status == 0 ? "cut" : "\(request.status)"
        guard let reason = request.reason else { return "\(status)" }
        let more = [request.cause, request.remedy].compactMap { $0 }.joined(separator: " ")
        return "<span class=\"bad\">\(status) \(reason)</span> <span class=\"minor\">\(more)</span>"
    }

    private static func words(_ duration: Duration) -> String {
        let milliseconds = duration / .milliseconds(1)
        return "\(Int(milliseconds.rounded(.up))) ms"
    }
}
