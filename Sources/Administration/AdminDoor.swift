import HTTPServer

/// In front of what not everybody may see or do.
struct AdminDoor: Sendable {
    /// What stands behind it.
    enum Area: Sendable {
        /// For orchestrators and scrapers, which ask by address and without a token: any Host, no secret, nothing changes.
        case probe
        /// Answers for programs and for the page's script, and every change: no other site may ask, and the token is
        /// wanted.
        case data
        /// What a link somewhere else may lead to: it is shown, but `AdminContext.isForeign` says how one came here.
        /// Without the token there is a form that asks for it.
        case page
        /// What the form that asks for the token needs itself.
        case open
        /// Where an authorization server sends the browser: from another site, and without the session's cookie. The
        /// attempt's own cookie stands in for both.
        case callback
    }

    enum Verdict: Sendable {
        case admitted(isForeign: Bool)
        case refused(ServerResponse)
    }

    let admission: Admission
    let gate: TokenGate

    func look(at request: ServerRequest, _ area: Area) async -> Verdict {
        var isForeign = false
        do throws(Admission.Refusal) {
            let own = request.localAddress
            if area == .callback, request.method == "GET" {
                try admission.checkHost(request.hosts, own: own)
            } else if area == .page, request.isNavigation {
                try admission.checkHost(request.hosts, own: own)
                isForeign = !request.sites.allSatisfy { $0 == "same-origin" || $0 == "none" }
            } else {
                try check(request)
            }
        } catch {
            return .refused(Self.answer(error))
        }
        if area == .data || area == .page, let refusal = await gate.refusal(request, asksInAForm: area == .page) {
            return .refused(refusal)
        }
        return .admitted(isForeign: isForeign)
    }

    /// Of one whose path is nobody's: strangers don't learn that.
    func refusal(of request: ServerRequest) -> ServerResponse? {
        do throws(Admission.Refusal) {
            try check(request)
            return nil
        } catch {
            return Self.answer(error)
        }
    }

    private func check(_ request: ServerRequest) throws(Admission.Refusal) {
        try admission.check(
            hosts: request.hosts, origins: request.values("Origin"), sites: request.sites, own: request.localAddress)
    }

    private static func answer(_ refusal: Admission.Refusal) -> ServerResponse {
        .problem(refusal.problem, refusal.sentence + "\n")
    }
}
