import ArgumentParser

/// Shows how a running proxy is.
struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the clients, their tokens and the upstreams of the running proxy.",
        discussion: """
            For each client: its state, when its token expires, when it last got one, the last error with what to do \
            about it, and how many requests wait. Never a token or a secret.

            The exit code is 0 when everything is as it should be or the proxy has only just started, 3 when something \
            is degraded (a client without a valid token, a store that can't be written, a proxy that stops), and 1 when \
            there is no proxy to ask. With --exit-zero it is 0 instead of 3, for scripts that only read.
            """)

    @OptionGroup var options: AdminOptions

    @Flag(help: "As JSON, for programs.")
    var json = false

    @Flag(help: "Exit with 0 also when something is degraded.")
    var exitZero = false

    func run() throws {
        try options.report(json ? "/status" : "/status?format=text", exitZero: exitZero)
    }
}
