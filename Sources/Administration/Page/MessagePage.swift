import HTML

/// A page that reports an outcome.
struct MessagePage {
    /// Offer to forget the tokens locally, after a failed sign-out.
    struct Forgetting {
        var client: String
        /// The form's token.
        var csrf: String
    }

    var title: String
    var headline: String
    /// CSS class of the headline's colour.
    var tone: String
    /// Sentences, each shown as a paragraph.
    var lines: [String]
    /// Whether the page ends a sign-in at a browser. Its script then removes the query from the address bar.
    var isCallback = false
    /// Whether the script sends the URL's fragment to the proxy.
    var handsOver = false
    /// Sentences about scopes and refresh tokens that were not granted.
    var shortfall: [String] = []
    /// Time in these sentences (ISO 8601). The script shows it in local time.
    var until: String?
    /// Words of the server.
    var quote: String?
    var forgetting: Forgetting?
    /// URL of the link "Try again".
    var again: String?

    var html: HTML {
        PageLayout(title: title, kind: isCallback ? "callback" : nil).card(
            """
            <h1 class="\(tone)">\(headline)</h1>
            <div id="outcome" role="status"\(attribute: "data-fragment", isSet: handsOver)>
            \(alreadyHTML: lines.map { "<p>\($0)</p>\n" })\(alreadyHTML: shortfall.map(warning))\(alreadyHTML: quotation)</div>
            \(alreadyHTML: forgetting.map(form))<p class="ways">\(alreadyHTML: link)<a class="button" href="/">To the overview</a></p>
            """)
    }

    private func warning(_ sentence: String) -> HTML {
        "<p class=\"warn\"\(attribute: "data-until", until)>\(sentence)</p>\n"
    }

    private var quotation: HTML? { quote.map { "<blockquote><p>\($0)</p></blockquote>\n" } }

    private func form(_ forgetting: Forgetting) -> HTML {
        """
        <form method="post" action="/logout/\(forgetting.client)">\
        <p>Or forget the tokens here only. The server may accept them until they expire.</p>
        <input type="hidden" name="csrf" value="\(forgetting.csrf)"><input type="hidden" name="local" value="true">\
        <button class="button main">Forget here</button></form>

        """
    }

    private var link: HTML? { again.map { "<a class=\"button main\" href=\"\($0)\">Try again</a> " } }
}
