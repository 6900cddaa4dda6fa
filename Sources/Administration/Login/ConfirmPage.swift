import HTML

/// Asks a person for a confirmation after another site led here.
enum ConfirmPage {
    static func html(_ client: String) -> HTML {
        PageLayout(title: "Sign in").card(
            """
            <h1>Sign in “\(client)”?</h1>
            <p>Another site, or a link in a message, brought you here. Nothing has happened so far. Go on if you want this
            proxy to act for you as the client <strong>\(client)</strong>.</p>
            <p class="ways"><a class="button main" href="/login/\(client)">Sign in</a> \
            <a class="button" href="/">To the overview</a></p>
            """)
    }
}
