import HTTPServer
import Heimdallr
import Reactor

/// Gives tokens to programs outside the proxy, at the admin socket. No other answer holds a token, and the admin port does
/// not have these routes. Who may have a token is decided here, and not in the command, because a program may ask by itself.
struct TokenExport {
    let model: AdminModel

    private static let timeout = Duration.seconds(20)

    func add(to router: inout AdminRouter) {
        router.on("GET", "/token/{client}", .data) { [self] request, context in await token(request, context) }
        router.on("POST", "/token/{client}/refused", .data) { [self] request, context in refused(request, context) }
    }

    private func token(_ request: ServerRequest, _ context: AdminContext) async -> ServerResponse {
        guard let client = model.client(context) else { return CommandRoutes.unknownClient(model, context) }
        if let refusal = refusal(client) { return refusal }
        let name = request.parameter("format") ?? "plain"
        guard let format = TokenFormat.named(name) else {
            let names = TokenFormat.all.map(\.name).joined(separator: ", ")
            return .plain(400, "There is no such format. Write one of \(names).\n")
        }
        var asked = TokenAsked()
        asked.host = request.parameter("host")
        asked.user = request.parameter("user")
        asked.scheme = request.parameter("scheme")
        asked.apiVersion = request.parameter("api_version")
        do {
            let token = try await client.heimdallr.exportedToken(waiting: Self.timeout)
            let text = try format.text(token, for: asked)
            model.sources.exported(
                ExportReport(client: client.heimdallr.name, format: name, user: request.peer?.user, end: token.endText))
            return .plain(200, text)
        } catch let fault as ExportFault {
            return .problem(.notExportable, "No token is given to the program: \(fault.sentence).\n")
        } catch {
            return missing(error as? HeimdallrError ?? .stopped, client)
        }
    }

    private func missing(_ error: HeimdallrError, _ client: AdministrationSources.Client) -> ServerResponse {
        let advice = Advice(model.signIn(of: client)).sentence(for: error)
        return .problem(
            .noToken, "There is no token: \(error).\nWhat to do: \(Sentence.ended(Sentence.plain(advice)))\n")
    }

    /// Takes a program's word that a server refused the token in the body.
    private func refused(_ request: ServerRequest, _ context: AdminContext) -> ServerResponse {
        guard let client = model.client(context) else { return CommandRoutes.unknownClient(model, context) }
        if let refusal = refusal(client) { return refusal }
        client.heimdallr.exportedTokenRefused(Secret(request.body))
        return .plain(200, "")
    }

    private func refusal(_ client: AdministrationSources.Client) -> ServerResponse? {
        if model.sources.servesOneProgram {
            return .problem(
                .notExportable,
                "A proxy of exec --serve gives no tokens: its program's requests get them. For a program that needs a "
                    + "token itself, start the proxy by serve.\n")
        }
        guard !client.isExportable else { return nil }
        return .problem(
            .notExportable,
            "The tokens of \(client.heimdallr.name) stay in the proxy. If programs may have them, write "
                + "exportable: true under clients.\(client.heimdallr.name).\n")
    }
}

/// A token that a program got, without the token.
public struct ExportReport: Sendable, Equatable {
    public let client: String
    /// Name of the format.
    public let format: String
    /// User ID of the program, from the kernel.
    public let user: UInt32?
    /// The token's end in RFC 3339; `nil` if no end is known.
    public let end: String?
    /// The file that got the token; `nil`: a program asked.
    public let file: String?

    public init(client: String, format: String, user: UInt32? = nil, end: String?, file: String? = nil) {
        (self.client, self.format, self.user, self.end, self.file) = (client, format, user, end, file)
    }
}

/// State of a client's token file.
public struct TokenFileReport: Sendable, Equatable {
    public let path: String
    /// Whether the file has a token.
    public let isWritten: Bool
    /// Reason why it can't be written.
    public let fault: String?

    public init(path: String, isWritten: Bool, fault: String?) {
        (self.path, self.isWritten, self.fault) = (path, isWritten, fault)
    }
}
