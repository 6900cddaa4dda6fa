import ArgumentParser
import Heimdallr
import WireText

struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Give a client's current access token to a program, in the form that the program reads.",
        discussion: """
            Only for clients with exportable: true. Anyone who has the token can use it until it expires. If there is \
            none, waits for one.

            Without a token it prints nothing to standard output, the reason and the way to sign in to standard error, \
            and the exit code is not 0. It never asks a person. docs/tokens.md has an example for each program.
            """)

    @OptionGroup var client: ClientOptions

    @Option(
        help: ArgumentHelp(
            "The form of the token: plain (the default), \(TokenFormat.all.dropFirst().map(\.name).joined(separator: ", ")).",
            valueName: "name"))
    var format: FormatName?

    @Option(
        help: ArgumentHelp(
            "The host that the token is for.",
            discussion: "netrc needs it. With git and docker, the command gives the token for no other host.",
            valueName: "host"))
    var host: String?

    @Option(
        help: ArgumentHelp(
            "The user name beside the token, for git, docker and netrc.",
            discussion: "Default: the name that git asks for, or oauth2.", valueName: "name"))
    var user: String?

    @Argument(help: "git and docker add the operation: get, store, erase or list.")
    var operation: String?

    private var row: TokenFormat { format?.format ?? TokenFormat.plain }

    func validate() throws {
        if operation != nil, !row.isConversation {
            throw ValidationError("only git and docker name an operation: leave it out, or write --format")
        }
    }

    func run() throws {
        let words = row.isConversation ? Self.standardInput() : []
        switch operation ?? "get" {
        case "get": try get(HelperQuestion(format: row.name, words))
        case "erase" where row.name == "git": try erase(HelperQuestion(format: "git", words))
        // The program asks again when it needs a token, so there is nothing to store, and no other operation matters.
        case "list": CommandOutput.write("{}\n")
        default: break
        }
    }

    private func get(_ question: HelperQuestion) throws {
        if let host, let other = question.host, host != other {
            throw ExitStatus.failure.error(
                "this helper is for \(host), and not for the host that the program asks about")
        }
        var parameters = [("format", row.name)]
        if let host = question.host ?? host { parameters.append(("host", host)) }
        if let user = user ?? question.user { parameters.append(("user", user)) }
        if let scheme = question.scheme { parameters.append(("scheme", scheme)) }
        if row.name == "kubectl", let version = Self.apiVersion { parameters.append(("api_version", version)) }
        let query = parameters.map { "\($0)=\(PercentEncoding.uri.encode($1))" }.joined(separator: "&")
        // A program may take a warning beside a token for a part of it.
        let answer = try client.options.ask("GET", target("?\(query)"), isQuiet: true)
        guard answer.status == 200 else {
            ErrorOutput.answer(String(decoding: answer.body, as: UTF8.self))
            throw ExitStatus.failure.error
        }
        CommandOutput.write(answer.body)
    }

    /// git erases a password that a server refused.
    private func erase(_ question: HelperQuestion) throws {
        guard let password = question.password else { return }
        let paths = try client.options.candidates(isQuiet: true)
        // git ignores the outcome.
        _ = AdminClient.first(of: paths, "POST", target("/refused"), body: Array(password.utf8))
    }

    private func target(_ end: String) -> String { "/token/\(PercentEncoding.uri.encode(client.client))\(end)" }

    /// `apiVersion` in KUBERNETES_EXEC_INFO, which client-go sets.
    private static var apiVersion: String? {
        ProcessEnvironment.value(of: "KUBERNETES_EXEC_INFO").flatMap { try? JSONParser.parse(Array($0.utf8)) }?[
            "apiVersion"]?
            .string
    }

    private static let mostLines = 256

    /// Returns the lines until an empty line; none from a terminal, because no person is asked.
    private static func standardInput() -> [String] {
        guard !Terminal.isStandardInput else { return [] }
        var lines: [String] = []
        while lines.count < mostLines, let line = Terminal.readLine(limit: 64 * 1024), !line.isEmpty {
            lines.append(line)
        }
        return lines
    }
}

/// A program's words on standard input of its helper.
struct HelperQuestion {
    private(set) var host: String?
    private(set) var user: String?
    private(set) var scheme: String?
    private(set) var password: String?

    /// - Parameter lines: of git, a line for each attribute (git-credential(1)). Of docker, the server.
    init(format: String, _ lines: [String]) {
        guard format == "git" else {
            host = lines.first
            return
        }
        for line in lines {
            guard let sign = line.firstIndex(of: "=") else { continue }
            let value = String(line[line.index(after: sign)...])
            switch line[..<sign] {
            case "host": host = value
            case "username": user = value
            case "protocol": scheme = value
            case "password": password = value
            default: continue
            }
        }
    }
}

/// The name of a format on the command line.
struct FormatName: ExpressibleByArgument {
    let format: TokenFormat

    init?(argument: String) {
        guard let format = TokenFormat.named(argument) else { return nil }
        self.format = format
    }

    static var allValueStrings: [String] { TokenFormat.all.map(\.name) }
}
