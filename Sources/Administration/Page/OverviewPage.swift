import HTML
import Heimdallr
import Reports

/// The page `/`. It contains no secret: see `StatusPage`.
struct OverviewPage {
    let status: StatusPage
    /// Token of the forms; `nil` if no random numbers are available.
    let formToken: String?
    /// Whether the last requests are kept, so that their page exists.
    var keepsRequests = false

    var html: HTML {
        PageLayout(title: title, kind: "overview", reload: 30).page(
            """
            <div class="sheet">
            <header class="top">
            <div>
            <h1>heimdallr-proxy</h1>
            <p class="sub">Keeps your OAuth tokens fresh, and puts them on requests.</p>
            </div>
            <p id="connection" class="connection" role="status" hidden></p>
            </header>
            <p id="notice" class="notice" role="status" aria-live="polite"></p>
            <p id="news" class="news" role="status" aria-live="polite"></p>
            <main id="content" tabindex="-1">
            <div id="live">
            \(alreadyHTML: live)
            </div>
            </main>
            <footer class="bottom">
            <p>\(alreadyHTML: requestsLink)Version \(status.version). For programs: <a href="/status">status</a>, <a href="/metrics">metrics</a>,
            <a href="/readyz?strict">readiness</a>. No token is ever shown here.</p>
            </footer>
            </div>
            """)
    }

    /// The content that the script updates.
    var live: HTML {
        """
        <section class="summary" aria-label="The proxy">
        <dl>
        <div><dt>State</dt><dd><span class="chip \(overall.tone)">\(overall.word)</span></dd></div>
        <div><dt>Running for</dt><dd>\(StatusPage.words(status.uptime))</dd></div>
        <div><dt>Requests in flight</dt><dd>\(status.traffic.inFlight)</dd></div>
        </dl>
        </section>
        <section aria-labelledby="clients-title">
        <h2 id="clients-title">Clients</h2>
        \(alreadyHTML: clients)
        </section>
        <section aria-labelledby="upstreams-title">
        <h2 id="upstreams-title">Upstreams</h2>
        \(alreadyHTML: upstreams)
        </section>
        \(alreadyHTML: untrusting)

        """
    }

    private var requestsLink: HTML? { keepsRequests ? "<a href=\"/requests\">The last requests</a>. " : nil }

    private var untrusting: HTML {
        guard !status.untrusting.isEmpty else { return "" }
        return """
            <section aria-labelledby="untrusting-title">
            <h2 id="untrusting-title">Programs that got no TLS from the proxy</h2>
            <ul>
            \(alreadyHTML: status.untrusting.map(\.html))
            </ul>
            </section>
            """
    }

    private var clients: HTML {
        let rows = Self.failuresFirst(status.clients) { $0.status.urgency }
        guard !rows.isEmpty else { return "<p class=\"empty\">The configuration has no clients.</p>" }
        return """
            <table class="cards clients" role="table">
            <caption class="unseen">OAuth clients, with the state of their tokens</caption>
            <thead role="rowgroup"><tr role="row">
            <th role="columnheader" scope="col">Client</th>
            <th role="columnheader" scope="col">State</th>
            <th role="columnheader" scope="col">Signed in</th>
            <th role="columnheader" scope="col">Scopes</th>
            <th role="columnheader" scope="col">Expires in</th>
            <th role="columnheader" scope="col">Last refresh</th>
            <th role="columnheader" scope="col"><span class="unseen">Actions</span></th>
            </tr></thead>
            <tbody role="rowgroup">
            \(alreadyHTML: rows.map { ClientRow($0, formToken: formToken).html })
            </tbody>
            </table>
            """
    }

    private var upstreams: HTML {
        let rows = Self.failuresFirst(status.upstreams) { StatusPage.counts($0).failed > 0 ? 0 : 1 }
        guard !rows.isEmpty else { return "<p class=\"empty\">The configuration has no upstreams.</p>" }
        return """
            <table class="cards upstreams" role="table">
            <caption class="unseen">Upstreams, with their requests since the proxy started</caption>
            <thead role="rowgroup"><tr role="row">
            <th role="columnheader" scope="col">Upstream</th>
            <th role="columnheader" scope="col">Client</th>
            <th role="columnheader" scope="col" class="number">Requests</th>
            <th role="columnheader" scope="col" class="number">Errors</th>
            <th role="columnheader" scope="col">Latency</th>
            </tr></thead>
            <tbody role="rowgroup">
            \(alreadyHTML: rows.map { UpstreamRow($0, status: status).html })
            </tbody>
            </table>
            """
    }

    private var overall: (word: String, tone: String) {
        if status.isDraining { return ("Stopping", "warn") }
        if !status.isReady { return ("Not ready yet", "busy") }
        guard status.isDegraded else { return ("Ready", "good") }
        return ("Degraded", status.clients.contains { $0.status.urgency == 0 } ? "bad" : "warn")
    }

    /// Sorts urgent rows to the front. Rows of equal urgency stay in the order of the configuration.
    private static func failuresFirst<Row>(_ rows: [Row], _ urgency: (Row) -> Int) -> [Row] {
        rows.enumerated().sorted { (urgency($0.element), $0.offset) < (urgency($1.element), $1.offset) }.map(\.element)
    }

    /// Title of the browser's tab.
    private var title: String {
        let waiting = status.clients.count { $0.status.state == .needsAuthentication }
        return waiting == 0 ? overall.word : "\(waiting) to sign in"
    }
}

extension HeimdallrStatus {
    /// Sort key of the overview: 0 for a fault, 1 if a person has to sign in, otherwise 2.
    var urgency: Int {
        if state == .backingOff || lastError != nil || storeFault != nil { return 0 }
        return state == .needsAuthentication ? 1 : 2
    }
}
