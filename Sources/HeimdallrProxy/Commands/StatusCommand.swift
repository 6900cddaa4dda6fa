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

            With --watch it goes on: on a terminal it draws again in place, once a second; in a pipe it writes a block \
            whenever something has changed that is no mere clock, and with --json one JSON a line. Ctrl-C ends it, with \
            exit code 0. A proxy that is restarted meanwhile is waited for.
            """)

    @OptionGroup var options: AdminOptions

    @Flag(help: "As JSON, for programs.")
    var json = false

    @Flag(help: "Exit with 0 also when something is degraded.")
    var exitZero = false

    @Flag(name: .shortAndLong, help: "Go on showing it until Ctrl-C.")
    var watch = false

    func run() throws {
        if watch { return try StatusWatch(options: options, asJSON: json).run() }
        try options.report(json ? "/status" : "/status?format=text", exitZero: exitZero)
    }
}
