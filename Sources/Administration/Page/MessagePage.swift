import HTML

/// A page that reports an outcome.
struct MessagePage {
    /// Offer after a failed sign-out: forget the tokens here.
    struct Forgetting {
        var client: String
        /// The form's token.
        var csrf: String
    }

    var title: String
    var headline: String
    /// CSS class of the headline's colour.
    var tone: String
    /// A sentence each.
    var lines: [String]
    /// The page ends a sign-in at a browser. The script removes its query from the address bar.
    var isCallback = false
    /// The script sends the URL's fragment.
    var handsOver = false
    /// Sentences about scopes and refresh tokens that were not granted.
    var shortfall: [String] = []
    /// The time in these sentences, ISO 8601, for the script.
    var until: String?
    /// Words of the server.
    var quote: String?
    var forgetting: Forgetting?
    /// URL to try again.
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
