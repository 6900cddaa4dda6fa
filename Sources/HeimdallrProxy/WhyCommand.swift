import ArgumentParser

/// Explains what the running proxy would do with a request.
struct WhyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "why",
        abstract: "Show which rule and which token a request would get.",
        discussion: """
            Sends nothing. Says which upstream of the configuration the request is for, where it would go, whose token \
            it would carry, how old that is, and the client's last error.
            """)

    @OptionGroup var options: AdminOptions

    @Argument(help: "The request's method, such as GET.")
    var method: String

    @Argument(help: "The URL as a program asks the proxy for it: http://HOST/PATH.")
    var url: String

    func run() throws {
        try options.perform("GET", "/why?method=\(AdminClient.escaped(method))&url=\(AdminClient.escaped(url))")
    }
}
