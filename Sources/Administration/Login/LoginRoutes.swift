import HTTPServer
import Heimdallr
import Logging
import WireText

/// Signing in at a browser: `/login/CLIENT`, and the targets of redirects.
struct LoginRoutes: Sendable {
    let model: AdminModel
    let logger: Logger
    let offers: OfferRoutes

    private var start: LoginStart { LoginStart(model: model) }

    /// Adds the routes. Call this last: callbacks may have any path that no other route has.
    func add(to router: inout AdminRouter) {
        router.on("GET", "/login/{client}", .page) { request, context in await begin(request, context) }
        router.on("GET", "/login/{client}/{ticket}", .page) { _, context in await device(context) }
        offers.add(to: &router)
        addCallbacks(to: &router)
    }

    /// Adds `/callback`, and the paths of other redirect URIs that lead to this listener.
    private func addCallbacks(to router: inout AdminRouter) {
        let taken = router.reservedNames
        var paths: Set<String> = ["/callback"]
        for client in model.sources.clients {
            guard let uri = client.redirectURI, let origin = model.addresses.ownOrigin(of: uri) else { continue }
            if Self.isFree(origin.route, taken) { paths.insert(origin.route) }
        }
        for path in paths {
            router.on("GET", path, .callback) { request, _ in await answer(request) }
            router.on("POST", path, .callback) { request, context in
                await fragment(request, isForeign: context.isForeign)
            }
        }
    }

    /// Whether no other route has the path's first segment, and the path has only plain characters.
    private static func isFree(_ path: String, _ taken: Set<String>) -> Bool {
        let first = path.split(separator: "/").first.map(String.init) ?? ""
        return !first.isEmpty && !taken.contains(first)
            && path.utf8.allSatisfy { ASCII.isAlphanumeric($0) || "-._/".utf8.contains($0) }
    }

    // MARK: Begin

    private func begin(_ request: ServerRequest, _ context: AdminContext) async -> ServerResponse {
        guard let client = model.client(context) else { return LoginPage.noClient }
        let name = client.heimdallr.name
        guard let method = client.heimdallr.loginMethod else {
            return LoginPage.failure(400, "Nothing to sign in", "Client \(name) gets its tokens without a sign-in.")
        }
        if let front = Front.unknown(before: request), model.addresses.front == nil {
            return LoginPage.failure(
                400, "A server in front of this page hides its address",
                "Your browser is at \(ForeignText.printable(front)), but the request names \(request.hosts.first ?? "no host"). The "
                    + "authorization server could not send your browser back.", Front.advice(front))
        }
        guard model.signsInHere(name, at: request.hosts.first) else {
            return LoginPage.failure(
                400, "Sign in at a terminal",
                method == .password
                    ? "Client \(name) needs a user name and a password, which no web page should ask for."
                    : "The redirect_uri of client \(name) does not lead to this page.",
                "Run: \(model.signIn(of: client).command)")
        }
        // Another site may link to this page, but can't begin a login.
        if context.isForeign, !model.logins.spendPass(request.parameter("pass")) {
            return .page(200, LoginPage.confirmation(name))
        }
        guard request.method == "GET" else { return .plain(200, "") }
        do throws(LoginError) {
            if method == .device {
                return .redirect(to: "/login/\(name)/\(try await model.logins.shownDeviceLogin(client.heimdallr))")
            }
            if let elsewhere = try start.otherOrigin(client, request) { return elsewhere }
            let ticket = request.parameter("ticket")
            if client.heimdallr.enrols { return try await offers.show(client, request, ticket: ticket) }
            return try await start.sendOut(client, ticket: ticket)
        } catch {
            return start.failure(error, client)
        }
    }

    // MARK: Callback

    private func answer(_ request: ServerRequest) async -> ServerResponse {
        guard request.method == "GET" else { return .plain(200, "") }
        let query = request.query ?? ""
        if query.hasPrefix(Self.done) { return again(request, state: String(query.dropFirst(Self.done.count))) }
        return mayHaveFragment(beside: query) ? LoginPage.handingOver : await finish(request, answer: "?" + query)
    }

    /// Beginning of the query that our script leaves in the address bar. The state follows.
    private static let done = "done="

    /// Answers a browser that reloads the page of a successful sign-in.
    private func again(_ request: ServerRequest, state: String) -> ServerResponse {
        signedIn(request, state: state).map { LoginPage.success($0.status()) }
            ?? UnusableAnswer(.unknown, hasState: true, cookies: [:]).page(nil)
    }

    /// Returns the client that this browser has signed in with this state, if the client has a token.
    private func signedIn(_ request: ServerRequest, state: String) -> Heimdallr? {
        guard let name = model.logins.finished(state: state, cookies: request.cookies),
            let client = model.sources.client(named: name)?.heimdallr, client.hasAccessToken
        else { return nil }
        return client
    }

    /// Whether the URL may have a fragment with the answer beside this query. Only a script can read a fragment.
    private func mayHaveFragment(beside query: String) -> Bool {
        guard !query.isEmpty else { return true }
        let names = Set(query.split(separator: "&").map { $0.prefix { $0 != "=" } })
        if names.contains("error") { return false }
        if names.contains("state") { return model.logins.awaitsFragment(state: Self.state(in: "?" + query)) }
        return !names.contains("code") && model.sources.clients.contains { $0.heimdallr.loginMethod == .implicit }
    }

    /// - Parameter isForeign: whether the authorization server's page has sent the answer, and not our own page.
    private func fragment(_ request: ServerRequest, isForeign: Bool) async -> ServerResponse {
        if isForeign {
            report("the server sent it by POST, which was not asked for (response_mode=form_post)")
            return LoginPage.formPost
        }
        let text = request.text
        guard !text.isEmpty, text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != UInt8(ascii: "#") })
        else {
            report(text.isEmpty ? "it is empty" : "it can't be read")
            return LoginPage.failure(
                400, "Not signed in",
                text.isEmpty ? "The server’s answer is empty." : "The server’s answer can’t be read.",
                "Sign in again from the overview.", isCallback: true)
        }
        return await finish(request, answer: (request.query.map { "?" + $0 } ?? "") + "#" + text)
    }

    /// - Parameter answer: query, fragment or both, with their `?` and `#`.
    private func finish(_ request: ServerRequest, answer: String) async -> ServerResponse {
        // If there is a fragment, the query is not part of the answer.
        let relevant = answer[(answer.firstIndex(of: "#") ?? answer.startIndex)...]
        if let name = AuthorizationResponse.repeatedName(in: relevant.dropFirst(), isFragment: relevant.hasPrefix("#"))
        {
            // The answer is ambiguous, so the attempt stays valid.
            report("the parameter \(name) is repeated")
            return LoginPage.repeatedParameter(name)
        }
        let state = Self.state(in: relevant)
        if let page = await pageOfOther(request, state: state) { return page }
        let taken: LoginAttempts.Attempt
        do throws(LoginAttempts.Refusal) {
            taken = try await take(state: state, cookies: request.cookies)
        } catch {
            // The other request may have taken it since.
            if error == .unknown, let page = await pageOfOther(request, state: state) { return page }
            return await unusable(relevant, error, request)
        }
        let name = taken.client.name
        let url = model.addresses.url(of: request, answer: answer, redirectURI: taken.login.redirectURI)
        do throws(LoginError) {
            try await model.logins.finish(taken, redirectedTo: url)
            return LoginPage.success(taken.client.status())
        } catch {
            return LoginPage.failure(of: error, model.signIn(of: name))
        }
    }

    /// A browser may send an answer twice at once. Waits for the other request with it, which reports a failure.
    /// - Returns: `nil` if there is none.
    private func pageOfOther(_ request: ServerRequest, state: String) async -> ServerResponse? {
        switch await model.logins.outcome(state: state, cookies: request.cookies) {
        case .success: again(request, state: state)
        case .failure(let error): LoginPage.failure(of: error, nil)
        case nil: nil
        }
    }

    /// The page for an answer that ends no sign-in now.
    private func unusable(
        _ answer: Substring, _ refusal: LoginAttempts.Refusal, _ request: ServerRequest
    ) async -> ServerResponse {
        let (state, parameters) = (Self.state(in: answer), answer.dropFirst())
        if refusal == .unknown {
            if let denial = await denial(parameters, request) { return denial }
            if let client = signedIn(request, state: state) { return LoginPage.repeated(client.name) }
        }
        let word = AuthorizationResponse.refusalWord(in: parameters)
        let cause = UnusableAnswer(refusal, hasState: !state.isEmpty, cookies: request.cookies)
        // The client has reported an answer from another browser.
        if refusal != .foreign { report(cause.reason + (word.map { "; the server’s answer was \($0)" } ?? "")) }
        return cause.page(word)
    }

    /// Logs an answer that ended no sign-in, a few times a minute.
    private func report(_ reason: String) {
        guard model.logins.mayReport() else { return }
        logger.warning("an answer to a sign-in was refused", metadata: ["reason": "\(reason)"])
    }

    /// Takes the attempt from this process, or else from another proxy of the fleet.
    private func take(
        state: String, cookies: [String: String]
    ) async throws(LoginAttempts.Refusal) -> LoginAttempts.Attempt {
        do throws(LoginAttempts.Refusal) {
            return try model.logins.take(state: state, cookies: cookies)
        } catch {
            guard error == .unknown,
                let taken = await model.logins.takeShared(
                    state: state, cookies: cookies, clients: model.sources.clients.map(\.heimdallr))
            else { throw error }
            return taken
        }
    }

    /// Answers an error without a state; returns `nil` for any other answer.
    private func denial(_ answer: Substring, _ request: ServerRequest) async -> ServerResponse? {
        guard AuthorizationResponse.refusalWithoutState(in: answer, hiding: []) != nil else { return nil }
        // The server is unknown, so the secrets of all clients are hidden.
        var secrets: [Secret] = []
        for client in model.sources.clients { secrets += await client.heimdallr.knownSecrets() }
        guard let error = AuthorizationResponse.refusalWithoutState(in: answer, hiding: secrets) else { return nil }
        if model.logins.refused(error, cookies: request.cookies) {
            logger.warning("an answer without a state refused a sign-in", metadata: ["reason": "\(error)"])
        }
        return LoginPage.denial(error)
    }

    /// Returns the first `state`; empty if there is none.
    private static func state(in answer: some StringProtocol) -> String {
        for pair in answer.dropFirst().split(separator: "&") where pair.hasPrefix("state=") {
            return String(pair.dropFirst("state=".count))
        }
        return ""
    }

    // MARK: On another device

    private func device(_ context: AdminContext) async -> ServerResponse {
        guard let client = model.client(context), let id = context.parameters["ticket"],
            let ticket = await model.logins.resume(id, client.heimdallr), ticket.client == client.heimdallr.name,
            let login = ticket.device
        else {
            return LoginPage.failure(
                404, "This sign-in has ended", "It was finished or cancelled, or took too long.",
                again: model.client(context).map { "/login/\($0.heimdallr.name)" })
        }
        let name = client.heimdallr.name
        switch ticket.progress {
        case .done: return LoginPage.success(client.heimdallr.status())
        case .failed(let sentence):
            return LoginPage.failure(
                400, "Not signed in", Sentence.whole(Sentence.plain(sentence)), again: "/login/\(name)")
        case .waiting: return .page(200, DevicePage(client: name, login: login).html)
        }
    }
}
