import HTTPServer

/// Access control of the admin port: checks the requesting site and the token.
struct AdminGate: Sendable {
    enum Area: Sendable {
        /// For orchestrators and scrapers: any Host, no token. Shows no secret and changes nothing.
        case probe
        /// Data and all changes: requires the token, and refuses other sites.
        case data
        /// A page that other sites may link to. `AdminContext.isForeign` marks requests that follow such a link. A
        /// request without the token gets a form that asks for the token.
        case page
        /// Files and target of the form that asks for the token: requires no token, and refuses other sites.
        case open
        /// Target of an authorization server's redirect. The redirect is a GET from another site, without the session
        /// cookie, so the login attempt's cookie replaces the site check and the token. A POST must come from our page.
        case callback
    }

    enum Verdict: Sendable {
        case admitted(isForeign: Bool)
        case refused(ServerResponse)
    }

    let origins: OriginPolicy
    let token: TokenGate

    func judge(_ request: ServerRequest, _ area: Area) async -> Verdict {
        var isForeign = false
        do throws(OriginPolicy.Refusal) {
            let own = request.localAddress
            if area == .callback, request.method == "GET" {
                try origins.checkHost(request.hosts, own: own)
            } else if area == .callback, request.isForm {
                // Our own page sends text. The handler explains a form of the server, and takes nothing from it.
                try origins.checkHost(request.hosts, own: own)
                isForeign = true
            } else if area == .page, request.isNavigation {
                try origins.checkHost(request.hosts, own: own)
                isForeign = !request.sites.allSatisfy { $0 == "same-origin" || $0 == "none" }
            } else {
                try check(request)
            }
        } catch {
            if error == .foreignPage, origins.front == nil, let front = Front.unknown(before: request) {
                let fault = "A server in front of this page has written another Host than your browser’s address has. "
                return .refused(.problem(.foreignPage, fault + Sentence.plain(Front.advice(front)) + "\n"))
            }
            return .refused(Self.answer(error))
        }
        if area == .data || area == .page {
            // Another site's link carries no session cookie. The page's own second request does.
            if isForeign, token.mayHaveSession(request) { return .refused(PassingPage.again(request.target)) }
            let asksInAForm = area == .page || request.value("Sec-Fetch-Mode") == "navigate"
            if let refusal = await token.refusal(request, asksInAForm: asksInAForm) { return .refused(refusal) }
        }
        return .admitted(isForeign: isForeign || PassingPage.isSecond(request))
    }

    /// Refuses another site's request for an unknown path, without revealing that the path is unknown.
    func refusal(of request: ServerRequest) -> ServerResponse? {
        do throws(OriginPolicy.Refusal) {
            try check(request)
            return nil
        } catch {
            return Self.answer(error)
        }
    }

    private func check(_ request: ServerRequest) throws(OriginPolicy.Refusal) {
        try origins.check(
            hosts: request.hosts, origins: request.values("Origin"), sites: request.sites, own: request.localAddress)
    }

    private static func answer(_ refusal: OriginPolicy.Refusal) -> ServerResponse {
        .problem(refusal.problem, refusal.sentence + "\n")
    }
}
