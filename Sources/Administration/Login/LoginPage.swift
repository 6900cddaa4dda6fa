import HTML
import HTTPServer
import Heimdallr

/// Pages at the end of a login. They never show a code, a state or a token.
enum LoginPage {
    /// The page after a success. It also names permissions that the server did not grant.
    static func success(_ client: HeimdallrStatus) -> ServerResponse {
        let shortfall = Shortfall(client)
        var lines = [
            "Client \(client.client) has its token"
                + (shortfall.until == nil ? ", and keeps it fresh from now on." : ".")
        ]
        lines += client.personSentences
        if shortfall.sentences.isEmpty { lines.append("You can close this window.") }
        var page = message(headline: "Signed in", tone: "good", lines)
        page.shortfall = shortfall.sentences
        page.until = shortfall.until
        return .page(200, page.html)
    }

    /// A page whose script sends the implicit grant's answer, which is in the URL's fragment, to the proxy.
    static var handingOver: ServerResponse {
        var page = message(
            headline: "Signing in", tone: "busy",
            ["One moment. This needs JavaScript; without it, sign in with heimdallr-proxy login --paste."])
        page.handsOver = true
        return .page(200, page.html)
    }

    private static func message(headline: String, tone: String, _ lines: [String]) -> MessagePage {
        MessagePage(title: headline, headline: headline, tone: tone, lines: lines, isCallback: true)
    }

    /// The page for an error without a state: neither its sender nor its sign-in is known.
    static func denial(_ error: OAuthError) -> ServerResponse {
        notSignedIn(
            "The authorization server, or the page that sent you here, refused a sign-in but did not say which. "
                + "Nothing was stored, and a sign-in under way is unchanged. The refusal says:", quote: "\(error)")
    }

    /// The page for an answer with a repeated parameter.
    /// - Parameter name: a fixed name, not text of the server.
    static func repeatedParameter(_ name: String) -> ServerResponse {
        notSignedIn(
            "The answer has the parameter “\(name)” twice, so its meaning is unclear. Nothing was stored, and a "
                + "sign-in that is under way is unchanged.")
    }

    private static func notSignedIn(_ line: String, quote: String? = nil) -> ServerResponse {
        var page = message(headline: "Not signed in", tone: "bad", [line])
        page.quote = quote
        return .page(400, page.html)
    }

    static let noClient = failure(404, "No such client", "The configuration has no client of that name.")

    static func failure(
        _ status: Int, _ headline: String, _ lines: String..., again: String? = nil, isCallback: Bool = false
    ) -> ServerResponse {
        var page = message(headline: headline, tone: "bad", lines)
        page.again = again
        page.isCallback = isCallback
        return .page(status, page.html)
    }

    /// The page for a successful answer that the browser has sent again.
    static func repeated(_ client: String) -> ServerResponse {
        let page = message(
            headline: "Signed in already", tone: "good",
            [
                "This answer of the server has signed client \(client) in before.",
                "Nothing was done now. You can close this window.",
            ])
        return .page(400, page.html)
    }

    /// The page for a failed sign-in.
    /// - Parameter signIn: the client's way to sign in; `nil` to begin again from the overview.
    static func failure(of error: LoginError, _ signIn: SignInWay?) -> ServerResponse {
        let sentence = signIn.map { Self.sentence(error, $0) } ?? Sentence.whole(Sentence.plain("\(error)"))
        return failure(
            status(of: error), "Not signed in", sentence, "Nothing was stored.",
            again: signIn.map { "/login/\($0.client)" }, isCallback: true)
    }

    /// The page for an answer that the server's page has sent in a form. Browsers send no cookie with it.
    static var formPost: ServerResponse {
        failure(
            400, "Not signed in",
            "The authorization server sent its answer in a form (response_mode=form_post). This proxy does not ask for that, "
                + "and takes answers from the address only. Nothing was stored.",
            "Remove response_mode from the client’s params, or change it at the server.", isCallback: true)
    }

    /// Returns the error as a sentence, with advice.
    static func sentence(_ error: LoginError, _ signIn: SignInWay) -> String {
        var text = "\(error)"
        if case .refused(let refusal) = error, signIn.method == .password, refusal.code == .invalidGrant {
            text = "the user name or the password is wrong (\(refusal))"
        }
        let fault = Sentence.whole(text)
        let advised = Advice(signIn).sentence(for: error).map { "\(fault) What to do: \(Sentence.ended($0))" }
        return Sentence.plain(advised ?? fault)
    }

    static func status(of error: LoginError) -> Int {
        switch error {
        case .endpoint, .discovery, .noEndpoint, .idToken: 502
        case .stopped, .noRandomness: 503
        default: 400
        }
    }

    /// The page that asks for a confirmation after another site has led here.
    static func confirmation(_ client: String) -> HTML {
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
