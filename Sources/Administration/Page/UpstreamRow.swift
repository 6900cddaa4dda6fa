import HTML
import Reports

/// An upstream on the overview: a row, and below it the last failure and examples.
struct UpstreamRow {
    private let upstream: UpstreamTraffic
    /// Destinations of the upstream's requests, at most four.
    private let destinations: [String]
    /// Commands to copy, at most four.
    private let examples: [String]
    /// Injected credentials of an upstream without a client.
    private let fixed: String?
    private let refused: [RefusedCredential]
    /// Configured destinations, for the sentence about the last failure.
    private let configured: [String]

    init(_ upstream: UpstreamTraffic, status: StatusPage) {
        self.upstream = upstream
        // At most four, so that many rules don't fill the page.
        destinations = status.texts(of: upstream, most: 4) { $0.destination ?? "https, the requested host" }
        examples = status.texts(of: upstream, most: 4) { $0.example }
        fixed = status.fixedCredentials(of: upstream)
        configured = status.destinations(of: upstream)
        refused = status.refusedCredentials(of: upstream)
    }

    var html: HTML {
        let (total, failed) = StatusPage.counts(upstream)
        let failing = failed > 0 || !refused.isEmpty ? " failing" : ""
        let hasMore = !examples.isEmpty || upstream.lastFailure != nil || !refused.isEmpty
        let chart = LatencyChart(upstream.durationsByUpstream)
        return """
            <tr role="row" id="up-\(id)" class="\(hasMore ? "has-note" : "")\(failing)">
            <th role="rowheader" scope="row" translate="no"><span class="name">\(name)</span>\
            \(alreadyHTML: destinations.map { "\n<span class=\"minor url\">→ \($0)</span>" })</th>
            <td role="cell" data-label="Client">\(alreadyHTML: client)</td>
            <td role="cell" data-label="Requests" class="number">\(total)</td>
            <td role="cell" data-label="Errors" class="number">\(alreadyHTML: errors(failed))\(alreadyHTML: codes)</td>
            <td role="cell" data-label="Latency" class="latency\(chart == nil ? " blank" : "")">\
            \(alreadyHTML: chart?.html ?? "<span class=\"minor\">–</span>")</td>
            </tr>
            \(alreadyHTML: hasMore ? note(failing) : nil)

            """
    }

    /// Unique identifier in the HTML. It has the client's name, because upstreams of the same host may have different
    /// clients. Neither name contains a slash.
    private var id: String { "\(name.filter { $0 != " " })/\(upstream.client ?? "")" }

    private var name: String {
        guard let words = TrafficGroup(rawValue: upstream.name)?.inWords else { return upstream.name }
        return words.prefix(1).uppercased() + words.dropFirst()
    }

    private var client: HTML {
        if let client = upstream.client { return "\(client)" }
        return "<span class=\"minor\">\(fixed ?? "no token")</span>"
    }

    private func errors(_ failed: Int) -> HTML { failed > 0 ? "<span class=\"bad\">\(failed)</span>" : "\(failed)" }

    private var codes: HTML? {
        var codes = Self.codes(upstream.answeredByUpstream.rows)
        if let ours = Self.codes(upstream.answeredByProxy.rows) {
            codes = (codes.map { $0 + "; " } ?? "") + ours + " by the proxy itself"
        }
        return codes.map { "\n<span class=\"minor\">\($0)</span>" }
    }

    private static func codes(_ requests: [(code: Int, count: UInt64)]) -> String? {
        let codes = requests.filter { $0.code >= 400 }.sorted { $0.count > $1.count }.prefix(4)
        return codes.isEmpty ? nil : codes.map { "\($0.count) × \($0.code)" }.joined(separator: ", ")
    }

    // MARK: Details

    private func note(_ failing: String) -> HTML {
        """
        <tr role="row" id="under-\(id)" class="note use\(failing)"><td role="cell" colspan="5"><details class="fold" id="use-\(id)">\
        <summary id="how-\(id)">\(alreadyHTML: summary)</summary>\(alreadyHTML: failure)\(alreadyHTML: refused.map(Self.refusal))\(alreadyHTML: usage)\
        </details></td></tr>
        """
    }

    private var summary: HTML {
        if !refused.isEmpty { return "<span class=\"bad\">The API refuses the credential</span>" }
        guard let failure = upstream.lastFailure else { return "Use it like this" }
        return "<span class=\"bad\">Last failure, \(StatusPage.words(failure.ago)) ago</span>"
    }

    private static func refusal(_ refused: RefusedCredential) -> HTML {
        """

        <p class="bad">\(Sentence.ended(refused.sentence)) What to do: \(Sentence.ended(Sentence.plain(refused.advice)))</p>
        """
    }

    private var failure: HTML? {
        guard let failure = upstream.lastFailure else { return nil }
        let names = configured.isEmpty ? "" : "\(configured.joined(separator: " or ")): "
        return """

            <p class="bad"><strong>Last failure, \(StatusPage.words(failure.ago)) ago:</strong> \(names + failure.cause)</p>
            """
    }

    private var usage: HTML? {
        guard !examples.isEmpty else { return nil }
        return """

            <p class="minor">Use it like this:</p>\(alreadyHTML: examples.map(Self.example))
            """
    }

    private static func example(_ command: String) -> HTML {
        """

        <p class="example" translate="no"><code>\(command)</code> <button type="button" class="button copy" data-copy hidden aria-label="Copy: \(command)">Copy</button></p>
        """
    }
}

extension LatencyChart {
    var html: HTML {
        """
        <svg role="img" viewBox="0 0 \(width) \(Self.height)" width="\(width)" height="\(Self.height)" \
        aria-label="Latency: \(summary)">\(alreadyHTML: bars.map(\.html))</svg>
        <span class="minor">\(quantiles)</span>
        """
    }
}

extension LatencyChart.Bar {
    fileprivate var html: HTML {
        """
        <rect class="\(count == 0 ? "none" : isSlow ? "slow" : "usual")" x="\(x)" y="\(LatencyChart.height - height)" \
        width="9" height="\(height)" rx="1.5"><title>\(words): \(count)</title></rect>
        """
    }
}
