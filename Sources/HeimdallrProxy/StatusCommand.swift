import ArgumentParser

/// Shows how a running proxy is.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the clients, their tokens and the upstreams of the running proxy.",
        discussion: """
            For each client: its state, when its token expires, when it last got one, the last error with what to do \
            about it, and how many requests wait. Never a token or a secret.
            """)

    @OptionGroup var options: AdminOptions

    @Flag(help: "As JSON, for programs.")
    var json = false

    func run() throws {
        try options.perform("GET", json ? "/status" : "/status?format=text")
    }
}
