import HTTPServer
import Heimdallr
import WireText

/// Routes of `heimdallr-proxy login`: begin, show and end a login. Answers are JSON, errors are sentences.
struct LoginCommandRoutes: Sendable {
    let model: AdminModel

    func add(to router: inout AdminRouter) {
        router.on("POST", "/login/{client}", .data) { request, context in await begin(request, context) }
        router.on("GET", "/login/{client}/{ticket}", .data) { _, context in progress(context) }
        router.on("POST", "/login/{client}/{ticket}", .data) { request, context in await takeAddress(request, context) }
        router.on("DELETE", "/login/{client}/{ticket}", .data) { _, context in
            if let id = context.parameters["ticket"] { model.logins.cancel(id) }
            return ServerResponse.plain(200, "")
        }
    }

    private func begin(_ request: ServerRequest, _ context: AdminContext) async -> ServerResponse {
        guard let client = model.client(context) else { return CommandRoutes.unknownClient(model, context) }
        let name = client.heimdallr.name
        guard let method = client.heimdallr.loginMethod else {
            return .plain(400, "Client \(name) gets its tokens without a sign-in.\n")
        }
        do throws(LoginError) {
            switch method {
            case .password: return try await password(client.heimdallr, request)
            case .device: return Self.json(try await device(client.heimdallr))
            case .browser, .implicit:
                if model.signsInHere(name), !request.asksFor("paste") {
                    let ticket = try model.logins.openTicket(name, anyToken: !client.heimdallr.hasAccessToken)
                    let url = model.addresses.loginURL(of: client) + "?ticket=" + ticket
                    return Self.json(["method": "browser", "ticket": .string(ticket), "url": .string(url)])
                }
                let (ticket, url) = try await model.logins.beginForCommand(
                    client.heimdallr, redirectURI: model.addresses.redirectURI(of: client))
                return Self.json(["method": "paste", "ticket": .string(ticket), "url": .string(url)])
            }
        } catch {
            return .problem(.signInFailed, LoginPage.sentence(error, model.signIn(of: client)) + "\n")
        }
    }

    private func device(_ client: Heimdallr) async throws(LoginError) -> KeyValuePairs<String, JSON> {
        let ticket = try await model.logins.beginDevice(client)
        guard let login = model.logins.ticket(ticket)?.device else { throw .cancelled }
        return [
            "method": "device", "ticket": .string(ticket), "user_code": .string(login.userCode),
            "verification_uri": .string(login.verificationURI),
            "verification_uri_complete": JSON(login.verificationURIComplete),
            "expires_in_seconds": JSON(ContinuousClock.now.duration(to: login.expiresAt)),
        ]
    }

    /// Signs in with user name and password. Without these fields, only answers with the method.
    private func password(_ client: Heimdallr, _ request: ServerRequest) async throws(LoginError) -> ServerResponse {
        guard let fields = request.form, let username = fields["username"], let password = fields["password"]
        else { return Self.json(["method": "password"]) }
        try await client.login(username: username, password: Secret(password))
        return Self.done(client)
    }

    private func progress(_ context: AdminContext) -> ServerResponse {
        guard let id = context.parameters["ticket"], let ticket = model.logins.ticket(id) else {
            return .problem(.signInOver, "This sign-in is over: it was cancelled, or took too long.\n")
        }
        let client = model.client(context)?.heimdallr
        switch ticket.progress {
        case .waiting where !ticket.isDoneWithAnyToken || client?.hasAccessToken != true:
            return Self.json(["state": "waiting"])
        case .waiting, .done: return Self.done(client)
        case .failed(let sentence): return Self.json(["state": "failed", "message": .string(Sentence.plain(sentence))])
        }
    }

    /// Takes the address of the redirect, pasted by a person. A text that is no answer gets `again`, with the reason.
    private func takeAddress(_ request: ServerRequest, _ context: AdminContext) async -> ServerResponse {
        guard let id = context.parameters["ticket"],
            await model.logins.finishForCommand(id, redirectedTo: request.text)
        else { return .problem(.signInOver, "This sign-in is over: it was finished before, or took too long.\n") }
        if let ticket = model.logins.ticket(id), ticket.progress == .waiting, let complaint = ticket.complaint {
            return Self.json(["state": "again", "message": .string(Sentence.whole(Sentence.plain(complaint)))])
        }
        return progress(context)
    }

    /// Reports success, with sentences about the person and about permissions that were not granted.
    private static func done(_ client: Heimdallr?) -> ServerResponse {
        let notes = client.map { $0.status().personSentences + Shortfall($0.status()).sentences } ?? []
        return json(["state": "done", "notes": JSON(notes)])
    }

    private static func json(_ members: KeyValuePairs<String, JSON>) -> ServerResponse {
        ServerResponse(
            status: 200, type: "application/json", JSON.object(members.map { .init($0.key, $0.value) }).document)
    }
}
