import HTML

/// Where another site led here, nothing begins until the person presses the button.
enum ConfirmPage {
    static func html(_ client: String) -> HTML {
        PageLayout(title: "Sign in").card(
            """
            <h1>Sign in “\(client)”?</h1>
            <p>Another site, or a link in a message, brought you here. If you want this proxy to act for you as the client
            <strong>\(client)</strong>, go on; nothing has happened so far.</p>
            <p class="ways"><a class="button main" href="/login/\(client)">Sign in</a> \
            <a class="button" href="/">To the overview</a></p>
            """)
    }
}
