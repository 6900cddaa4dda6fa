import HTML
import Heimdallr
import Reports

/// Note below a client on the overview: its fault, with advice.
struct ClientNote {
    /// CSS class of the note's colour.
    private let tone: String
    private let headline: String
    /// Fault in a few words, for a narrow screen.
    private let short: String
    private let detail: String
    private let todo: String?
    private let also: [String]
    private let command: String?

    /// - Returns: `nil` for a client without a fault.
    init?(_ listed: ReadinessAnswer.Client) {
        let client = listed.status
        let needsLogin = client.state == .needsAuthentication
        let cause = client.cause.map { " The server refused: \($0)." } ?? ""
        short = ShortCause.text(client) ?? ""
        also = Self.sentences(listed)
        let error = client.lastError
        todo = error.map { Sentence.whole(Advice(listed.signIn).sentence(for: $0)) }
        let isForTerminal = client.loginMethod != nil && listed.signIn.url == nil
        command = error == nil && needsLogin && isForTerminal ? listed.signIn.command : nil
        if let error {
            tone = "bad"
            headline = "Last error" + (client.sinceLastError.map { ", \(StatusPage.words($0)) ago:" } ?? ":")
            detail = Sentence.whole("\(error)") + cause
        } else if needsLogin, client.isTokenRefused {
            tone = "warn"
            headline = "An API refuses the token."
            detail =
                "It answered invalid_token, and there is no refresh token, so only a sign-in brings a new token. "
                + "Requests still get the old token; where the API refuses it, its 401 or a 503 of the proxy follows."
                + cause
        } else if client.isServedAfterLoss {
            tone = "warn"
            headline = "The sign-in has ended."
            detail = "Requests get the last token until it ends, and 503 after that, until a person signs in." + cause
        } else if needsLogin {
            tone = "warn"
            headline = "Nobody is signed in."
            detail = "Requests that need this client’s token get 503 until a person signs in." + cause
        } else if let need = client.enrolment?.need {
            tone = "warn"
            headline = "A new sign-in is needed for some requests."
            detail = Sentence.whole(need)
        } else if client.storeFault != nil {
            tone = "bad"
            headline = "Tokens are kept in memory only."
            detail = ""
        } else {
            return nil
        }
    }

    private static func sentences(_ listed: ReadinessAnswer.Client) -> [String] {
        let client = listed.status
        var also: [String] = []
        if client.lastError != nil {
            let last = listed.lastRequest
            if let url = last.url { also.append("Asked: \(url)\(last.cause.map { ": \($0)" } ?? "")") }
            if let next = client.nextAttemptIn {
                also.append("The next token request is due in \(StatusPage.words(next)).")
            }
        }
        if let words = listed.lastSignIn { also.append(Sentence.whole(words)) }
        if client.hasForeignRecord { also.append("Store: \(Advice.foreignRecord).") }
        if let fault = client.storeFault { also.append(Sentence.ended("Store: \(fault)")) }
        for fact in client.enrolment?.facts ?? [] where fact.name != "wanted" {
            also.append("\(fact.name): \(fact.text)")
        }
        if client.state == .needsAuthentication, client.enrolment == nil, let uri = listed.signIn.redirectURI {
            also.append("Redirect URI to register at the server: \(uri)")
        }
        return also
    }

    /// - Parameters:
    ///   - failing: another CSS class of the row, with a space before it; or empty.
    ///   - facts: details that a narrow screen does not show in the row.
    func html(of name: String, failing: String, facts: String) -> HTML {
        """
        <tr role="row" id="note-\(name)" class="note\(failing)"><td role="cell" colspan="7"><details class="fold" id="more-\(name)">\
        <summary id="say-\(name)"><span class="\(tone)">\(short)</span></summary>
        <p class="\(tone)"><strong>\(headline)</strong> \(alreadyHTML: Self.marked(detail))</p>\(alreadyHTML: advice)\
        \(alreadyHTML: also.map { "<p>\(alreadyHTML: Self.marked($0))</p>" })\(alreadyHTML: toRun)
        <p class="narrow">\(facts)</p></details></td></tr>
        """
    }

    private var advice: HTML? { todo.map { "<p>What to do: \(alreadyHTML: Self.marked($0))</p>" } }

    private var toRun: HTML? { command.map { "<p translate=\"no\">Run: <code>\($0)</code></p>" } }

    /// Returns the text with its code in another font.
    private static func marked(_ text: String) -> HTML {
        Sentence.runs(text).map { run -> HTML in
            run.isCode ? "<code><span translate=\"no\">\(run.text)</span></code>" : "\(run.text)"
        }.joined()
    }
}
