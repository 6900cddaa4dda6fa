import HTML
import Heimdallr

/// A client on the overview: a row, and below it a fault or details.
struct ClientRow {
    private let listed: ReadinessAnswer.Client
    private let client: HeimdallrStatus
    private let shortfall: Shortfall
    /// Token of the forms; `nil` if no random numbers are available.
    private let formToken: String?

    init(_ listed: ReadinessAnswer.Client, formToken: String?) {
        self.listed = listed
        client = listed.status
        shortfall = Shortfall(listed.status)
        self.formToken = formToken
    }

    var html: HTML {
        let (_, word, tone) = client.state.shown
        let note = ClientNote(listed)
        let failing = client.urgency == 0 ? " failing" : ""
        return """
            <tr role="row" id="row-\(client.client)" class="\(note == nil ? "has-calm" : "has-note")\(failing)">
            <th role="rowheader" scope="row" translate="no"><span class="name">\(client.client)</span>
            <span class="minor">\(GrantName.inWords(client.grantType))</span>\(alreadyHTML: issuer)</th>
            <td role="cell" data-label="State" class="state"><span class="chip \(tone)">\(word)</span>\
            \(alreadyHTML: Self.minor(waiters))</td>
            <td role="cell" data-label="Signed in"\(attribute: "class", client.signedInAs == nil ? "nobody" : nil)>\
            \(alreadyHTML: who)</td>
            <td role="cell" data-label="Scopes"\(attribute: "class", client.scope.isEmpty ? "blank" : nil)>\
            \(alreadyHTML: scopes)\(alreadyHTML: Self.minor(shortfall.scopeWords))</td>
            <td role="cell" data-label="Expires in" class="number\(client.endsBy == nil ? " blank" : "")">\
            \(alreadyHTML: expiry)\(alreadyHTML: Self.minor(signInEnds))</td>
            <td role="cell" data-label="Last refresh" class="number">\(alreadyHTML: lastRefresh)</td>
            <td role="cell" class="actions">
            \(alreadyHTML: signIn)
            \(alreadyHTML: refresh)
            \(alreadyHTML: signOut)
            </td>
            </tr>
            \(alreadyHTML: note.map { $0.html(of: client.client, failing: failing, facts: facts) } ?? calm)

            """
    }

    private static func minor(_ text: String?) -> HTML? { text.map { "\n<span class=\"minor\">\($0)</span>" } }

    private var issuer: HTML? { listed.server.map { "\n<span class=\"minor url\">\($0)</span>" } }

    private var waiters: String? {
        client.waiters > 0 ? "\(client.waiters) request\(client.waiters == 1 ? " waits" : "s wait")" : nil
    }

    private var needsLogin: Bool { client.state == .needsAuthentication }

    private var who: HTML {
        if let who = client.signedInAs { return "<span class=\"who\" translate=\"no\">\(who)</span>" }
        return
            "<span class=\"minor\">\(client.loginMethod == nil ? "by itself" : needsLogin ? "nobody" : "somebody")</span>"
    }

    private static let nothing: HTML = "<span class=\"minor\">–</span>"

    private var scopes: HTML {
        if client.scope.isEmpty { return Self.nothing }
        return "<ul translate=\"no\" class=\"scopes\">\(alreadyHTML: client.scope.map { "<li>\($0)</li>" })</ul>"
    }

    private var expiry: HTML {
        guard let left = client.expiresIn else { return client.endsBy == nil ? Self.nothing : "no known end" }
        return "<span data-countdown=\"\(left.components.seconds)\">\(StatusPage.words(left))</span>"
    }

    private var signInEnds: String? {
        client.refreshTokenExpiresIn.map { "sign-in ends in \(StatusPage.words($0))" } ?? shortfall.untilWords
    }

    private var lastRefresh: HTML {
        guard let since = client.sinceLastSuccess else { return "<span class=\"minor\">never</span>" }
        return "<span>\(StatusPage.words(since)) ago</span>"
    }

    // MARK: Buttons

    private var signIn: HTML? {
        guard listed.signIn.url != nil, client.state != .stopped else { return nil }
        let word = needsLogin ? "Sign in" : "Sign in again"
        return """
            <a class="button\(needsLogin ? " main" : "")" id="in-\(client.client)" href="/login/\(client.client)" \
            aria-label="\(word): \(client.client)">\(word)</a>
            """
    }

    private var refresh: HTML? {
        guard client.loginMethod == nil || client.hasRefreshToken, client.state != .stopped, client.callers == nil
        else { return nil }
        let isUnderWay = client.state == .fetching || client.state == .starting
        return """
            <form method="post" action="/refresh/\(client.client)">\(alreadyHTML: hidden)<button class="button" \
            id="re-\(client.client)" aria-label="Refresh now: \(client.client)"\(attribute: "aria-disabled", isUnderWay ? "true" : nil)>Refresh now</button></form>
            """
    }

    private var signOut: HTML? {
        guard client.loginMethod != nil, client.endsBy != nil || client.hasRefreshToken else { return nil }
        return """
            <form method="post" action="/logout/\(client.client)">\(alreadyHTML: hidden)<button class="button quiet" \
            id="out-\(client.client)" aria-label="Sign out: \(client.client)">Sign out</button></form>
            """
    }

    private var hidden: HTML? { formToken.map { "<input type=\"hidden\" name=\"csrf\" value=\"\($0)\">" } }

    // MARK: Details

    private var calm: HTML {
        """
        <tr role="row" id="note-\(client.client)" class="note calm"><td role="cell" colspan="7"><details class="fold" id="more-\(client.client)">\
        <summary id="say-\(client.client)">Details</summary><p>\(facts)</p></details></td></tr>
        """
    }

    /// Details that a narrow screen does not show in the row.
    private var facts: String {
        var facts = [GrantName.inWords(client.grantType)]
        if let issuer = listed.server { facts.append(issuer) }
        if !client.scope.isEmpty { facts.append("scopes: \(client.scope.joined(separator: ", "))") }
        facts += [shortfall.scopeWords, shortfall.untilWords].compactMap { $0 }
        if let left = client.refreshTokenExpiresIn { facts.append("sign-in ends in \(StatusPage.words(left))") }
        facts.append("last refresh: \(client.sinceLastSuccess.map { "\(StatusPage.words($0)) ago" } ?? "never")")
        return facts.joined(separator: " · ")
    }
}
