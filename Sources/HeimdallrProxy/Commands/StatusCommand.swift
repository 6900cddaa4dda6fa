import ArgumentParser

struct StatusCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the clients, their tokens and the upstreams of the running proxy.",
        discussion: """
            For each client it shows the state, the end of its token, the last success, the last error with the remedy, \
            and the number of waiting requests. It never shows a token or a secret.

            The exit code is 0 when all is well or the proxy has just started, 3 when something is degraded (a client \
            without a valid token, a store that can't be written, a proxy that stops), and 1 without a running proxy. \
            With --exit-zero it is 0 instead of 3, for scripts that only read.

            With --watch it repeats: on a terminal in place, once a second; in a pipe a block after each change, or with \
            --json one line of JSON. Ctrl-C ends it, with exit code 0. It waits for a proxy that is restarted.
            """)

    @OptionGroup var options: AdminOptions

    @Flag(help: "Print JSON for programs.")
    var json = false

    @Flag(help: "Exit with 0 even if something is degraded.")
    var exitZero = false

    @Flag(name: .shortAndLong, help: "Repeat it until Ctrl-C.")
    var watch = false

    func run() throws {
        if watch { return try StatusWatch(options: options, asJSON: json).run() }
        try options.report(json ? "/status" : "/status?format=text", exitZero: exitZero)
    }
}
