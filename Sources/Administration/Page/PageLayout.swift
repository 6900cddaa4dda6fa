import HTML

/// HTML around all pages. The Content-Security-Policy allows styles and scripts only in files.
struct PageLayout {
    var title: String
    /// Kind of the page, for the script.
    var kind: String?
    /// Interval in seconds at which browsers without scripts reload the page; `nil` for never.
    var reload: Int?
    /// Address on this host that browsers open at once.
    var next: String?

    func page(_ body: HTML) -> HTML {
        """
        <!DOCTYPE html>
        <html lang="en">
        <head>
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <meta name="color-scheme" content="light dark">
        <title>\(title) · heimdallr-proxy</title>
        <link rel="icon" href="/icon.svg" type="image/svg+xml">
        <link rel="stylesheet" href="/page.css">
        <script src="/page.js" defer></script>
        \(alreadyHTML: leading)\(alreadyHTML: reloading)</head>
        <body\(attribute: "data-kind", kind)>
        <a class="skip" href="#content">Skip to the content</a>
        <p class="styled">The style of this page is missing. If a server in front of it leads here from another path, write the
        address of this page as <code>url</code> under <code>admin</code> into the configuration.</p>
        \(alreadyHTML: body)
        </body>
        </html>

        """
    }

    /// A page with one message.
    func card(_ content: HTML) -> HTML {
        page(
            """
            <main class="card" id="content" tabindex="-1">
            <p class="brand">heimdallr-proxy</p>
            \(alreadyHTML: content)
            </main>
            """)
    }

    private var leading: HTML? { next.map { "<meta http-equiv=\"refresh\" content=\"0; url=\($0)\">\n" } }

    private var reloading: HTML? {
        reload.map { "<noscript><meta http-equiv=\"refresh\" content=\"\($0)\"></noscript>\n" }
    }
}
