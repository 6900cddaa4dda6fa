import ArgumentParser
import WireText

struct LogoutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout",
        abstract: "Revoke and forget a client's tokens.",
        discussion: """
            Asks the authorization server to revoke the refresh token, then the access token (RFC 7009), and forgets \
            both. If the server is unreachable or refuses, nothing is forgotten and the exit code is 1; --local forgets \
            the tokens anyway. A client that needs no sign-in gets new tokens with its next request.
            """)

    @OptionGroup var options: AdminOptions

    @Argument(help: "The client's name in the configuration.")
    var client: String

    @Flag(help: "Forget the tokens without asking the server to revoke them.")
    var local = false

    func run() throws {
        try options.perform("POST", "/logout/\(PercentEncoding.uri.encode(client))\(local ? "?local=true" : "")")
    }
}
