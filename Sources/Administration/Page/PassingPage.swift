import HTML
import HTTPServer

/// A page that leads on at once, in place of a redirect.
///
/// A browser holds the redirects after a form against `form-action` of the form's page (Content Security Policy 3,
/// section 6.4.1), and keeps cookies with `SameSite=Strict` from all redirects after another site's link. A page that
/// leads on by itself begins anew, as a step of this site, so both can stay strict.
enum PassingPage {
    /// - Parameter target: path and query on this host.
    static func to(_ target: String) -> ServerResponse {
        let page = PageLayout(title: "Go on", next: target).card(
            """
            <h1>One moment</h1>
            <p class="ways"><a class="button main" href="\(target)">Go on</a></p>
            """)
        return .page(200, page)
    }

    // MARK: Another site's link

    /// Parameter that marks the second request for another site's link, which is still treated as another site's.
    private static let mark = "from=elsewhere"

    /// Asks for the address again, with the cookies of this site.
    static func again(_ target: String) -> ServerResponse {
        to(target + (target.contains("?") ? "&" : "?") + mark)
    }

    static func isSecond(_ request: ServerRequest) -> Bool { request.query?.hasSuffix(mark) == true }

    /// Returns the address of the first request.
    static func first(_ target: String) -> String {
        target.hasSuffix(mark) ? String(target.dropLast(mark.count + 1)) : target
    }
}
