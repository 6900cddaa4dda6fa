import HTML

/// The form that asks for `admin.token`.
struct TokenForm {
    let csrf: String
    /// Path of the next page, on this host.
    let next: String
    /// Complaint about the last value.
    let wrong: String?

    var html: HTML {
        PageLayout(title: "Token").card(
            """
            <h1>This page requires its token</h1>
            \(alreadyHTML: complaint)<form method="post" action="/enter" class="gate">
            <input type="hidden" name="csrf" value="\(csrf)"><input type="hidden" name="next" value="\(next)">
            <label for="token">The value of <code>admin.token</code></label>
            <input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
            <button class="button main">Go on</button>
            </form>
            """)
    }

    private var complaint: HTML? {
        guard let wrong else { return nil }
        return "<p class=\"bad\" role=\"alert\">\(wrong)</p>\n"
    }
}
