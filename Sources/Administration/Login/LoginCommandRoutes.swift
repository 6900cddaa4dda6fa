import HTTPTypes
import Heimdallr
import Hummingbird
import WireText

/// What `heimdallr-proxy login` asks for over the admin socket: to begin a login, how it goes, and to end it. Answers are
/// JSON; what goes wrong is a sentence.
struct LoginCommandRoutes: Sendable {
    let office: Office

    func add(to group: some RouterMethods<AdminContext>) {
        group.post("login/:client") { request, context in await begin(request, context) }
        group.get("login/:client/:ticket") { _, context in progress(context) }
        group.post("login/:client/:ticket") { request, context in await hand(request, context) }
        group.delete("login/:client/:ticket") { _, context in
            if let id = context.parameters.get("ticket") { office.logins.cancel(id) }
            return Response.plain(.ok, "")
        }
    }

    private func begin(_ request: Request, _ context: AdminContext) async -> Response {
        guard let client = office.client(context) else { return CommandRoutes.unknownClient(office) }
        let name = client.heimdallr.name
        guard let method = client.heimdallr.loginMethod else {
            return .plain(.badRequest, "Client \(name) gets its tokens by itself; nobody has to sign in.\n")
        }
        do throws(LoginError) {
            switch method {
            case .password: return try await password(client.heimdallr, request)
            case .device: return Self.json(try await device(client.heimdallr))
            case .browser, .implicit:
                if office.signsInHere(name), !request.asksFor("paste") {
                    let ticket = try office.logins.openTicket(
                        name, anyToken: !client.heimdallr.hasAccessToken)
                    let url = office.addresses.loginURL(of: client) + "?ticket=" + ticket
                    return Self.json(["method": "browser", "ticket": .string(ticket), "url": .string(url)])
                }
                let (ticket, url) = try await office.logins.beginForCommand(
                    client.heimdallr, redirectURI: office.addresses.redirectURI(of: client))
                return Self.json(["method": "paste", "ticket": .string(ticket), "url": .string(url)])
            }
        } catch {
            return Self.failure(error, office.signIn(of: client))
        }
    }

    private func device(_ client: Heimdallr) async throws(LoginError) -> KeyValuePairs<String, JSON> {
        let ticket = try await office.logins.beginDevice(client)
        guard let login = office.logins.ticket(ticket)?.device else { throw .cancelled }
        return [
            "method": "device", "ticket": .string(ticket), "user_code": .string(login.userCode),
            "verification_uri": .string(login.verificationURI),
            "verification_uri_complete": JSON(login.verificationURIComplete),
            "expires_in_seconds": JSON(ContinuousClock.now.duration(to: login.expiresAt)),
        ]
    }

    /// Without a user name it is only asked what there is to ask for.
    private func password(_ client: Heimdallr, _ request: Request) async throws(LoginError) -> Response {
        guard let fields = await request.form(), let username = fields["username"], let password = fields["password"]
        else { return Self.json(["method": "password"]) }
        try await client.login(username: username, password: Secret(password))
        return Self.done(client)
    }

    private func progress(_ context: AdminContext) -> Response {
        guard let id = context.parameters.get("ticket"), let ticket = office.logins.ticket(id) else {
            return .plain(.notFound, "This sign-in is over: it was cancelled, or took too long.\n")
        }
        switch ticket.progress {
        case .waiting where ticket.isDoneWithAnyToken && office.client(context)?.heimdallr.hasAccessToken == true:
            return Self.done(office.client(context)?.heimdallr)
        case .waiting: return Self.json(["state": "waiting"])
        case .done: return Self.done(office.client(context)?.heimdallr)
        case .failed(let sentence): return Self.json(["state": "failed", "message": .string(Sentence.plain(sentence))])
        }
    }

    /// The address that the browser was sent to, as somebody has pasted it.
    private func hand(_ request: Request, _ context: AdminContext) async -> Response {
        guard let id = context.parameters.get("ticket"), let url = await request.text(),
            await office.logins.finishForCommand(id, redirectedTo: url)
        else { return .plain(.notFound, "This sign-in is over: it was finished before, or took too long.\n") }
        return progress(context)
    }

    /// And what was not granted.
    private static func done(_ client: Heimdallr?) -> Response {
        let notes = client.map { Shortfall($0.status()).sentences } ?? []
        return json(["state": "done", "notes": .array(notes.map { .string($0) })])
    }

    private static func json(_ members: KeyValuePairs<String, JSON>) -> Response {
        .content(.ok, "application/json", JSON.object(members.map { .init($0.key, $0.value) }).document)
    }

    private static func failure(_ error: LoginError, _ signIn: SignIn) -> Response {
        .plain(.badGateway, LoginPage.sentence(error, signIn) + "\n")
    }
}
