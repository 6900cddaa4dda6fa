import ArgumentParser
import WireText

struct RefreshCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh",
        abstract: "Ask for a client's new token now, and print the outcome.",
        discussion: """
            Use it after a change at the authorization server: a scope, a secret, a key. The current token stays in use \
            until the new one arrives, or if none does. The command ends a backoff. It respects the other limits: one token \
            request of a client at a time, a second between two of them, and a pause that the server asked for by \
            Retry-After. The token is never shown.

            The exit code is 0 once the client has a new token, else 1. A client that needs a sign-in needs \
            heimdallr-proxy login CLIENT instead.
            """)

    @OptionGroup var options: AdminOptions

    @Argument(help: "The client's name in the configuration.")
    var client: String

    func run() throws {
        try options.perform("POST", "/refresh/\(PercentEncoding.uri.encode(client))")
    }
}
