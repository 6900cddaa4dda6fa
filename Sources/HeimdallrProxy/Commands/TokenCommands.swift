import ArgumentParser
import WireText

/// Options of a command for one client of the running proxy.
struct ClientOptions: ParsableArguments {
    @OptionGroup var options: AdminOptions

    @Argument(help: "The client's name in the configuration.")
    var client: String

    func perform(_ method: String, _ verb: String, query: String = "") throws {
        try options.perform(method, "/\(verb)/\(PercentEncoding.uri.encode(client))\(query)")
    }
}

struct LogoutCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "logout",
        abstract: "Revoke and forget a client's tokens.",
        discussion: """
            Asks the authorization server to revoke the refresh token, then the access token (RFC 7009), and forgets \
            both. If the server is unreachable or refuses, nothing is forgotten and the exit code is 1; --local forgets \
            the tokens anyway. A client that needs no sign-in gets new tokens with its next request.
            """)

    @OptionGroup var client: ClientOptions

    @Flag(help: "Forget the tokens without asking the server to revoke them.")
    var local = false

    func run() throws { try client.perform("POST", "logout", query: local ? "?local=true" : "") }
}

struct RefreshCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "refresh",
        abstract: "Request a new token for a client now, and print the outcome.",
        discussion: """
            Use it after a change at the authorization server: a scope, a secret, a key. The current token stays in \
            use until a new token arrives. The command ends a backoff. It respects the other limits: one token request \
            of a client at a time, a second between two requests, and the server's Retry-After. It shows no token.

            The exit code is 0 once the client has a new token, and the store has its record; else 1. For a client that needs a sign-in, use \
            heimdallr-proxy login CLIENT instead.
            """)

    @OptionGroup var client: ClientOptions

    func run() throws { try client.perform("POST", "refresh") }
}

struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Make the running proxy read its configuration again.",
        discussion: """
            A valid configuration replaces the former one as a whole. New requests use it; requests in flight end with \
            the former one. Unchanged clients and upstreams keep their tokens, connections and counters. The command \
            waits until the new configuration is in use, and prints the changes.

            An invalid configuration changes nothing. The command then prints each problem with file, line and column, \
            and its exit code is 78. A change of proxy.threads, admin, store, log.format or playground is such a \
            problem: it needs a restart.

            SIGHUP does the same, and writes the outcome to the log.
            """)

    @OptionGroup var options: AdminOptions

    func run() throws {
        let answer = try options.ask("POST", "/reload")
        guard answer.status != 200 else {
            CommandOutput.write(answer.body)
            return
        }
        ErrorOutput.answer(String(decoding: answer.body, as: UTF8.self))
        throw (answer.status == 422 ? ExitStatus.badConfiguration : .failure).error
    }
}
