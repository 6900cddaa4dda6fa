import ArgumentParser
import WireText

struct TokenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "token",
        abstract: "Print a client's current access token.",
        discussion: """
            For experiments: anyone who has the token can use it until it expires. If there is none, waits for one.
            """)

    @OptionGroup var options: AdminOptions

    @Argument(help: "The client's name in the configuration.")
    var client: String

    func run() throws {
        try options.perform("GET", "/token/\(PercentEncoding.uri.encode(client))")
    }
}
