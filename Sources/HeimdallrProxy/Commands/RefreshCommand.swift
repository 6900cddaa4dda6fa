import ArgumentParser
import WireText

/// Has the running proxy ask for a client's new token.
struct RefreshCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh",
        abstract: "Ask for a client's new token now, and say what came of it.",
        discussion: """
            For when somebody has changed something at the authorization server: a scope, a secret, a key. The token \
            that is in use serves on until the new one is there, or if none comes. A backoff is ended by it; two token \
            requests of a client are a second apart all the same, there is never a second one beside one that is under \
            way, and a server that asked for a pause by Retry-After gets it. The token is never shown.

            The exit code is 0 once the client has a new token, else 1. A client that needs somebody to sign in wants \
            heimdallr-proxy login CLIENT.
            """)

    @OptionGroup var options: AdminOptions

    @Argument(help: "The client's name in the configuration.")
    var client: String

    func run() throws {
        try options.perform("POST", "/refresh/\(PercentEncoding.uri.encode(client))")
    }
}
