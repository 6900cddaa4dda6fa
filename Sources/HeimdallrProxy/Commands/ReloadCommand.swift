import ArgumentParser

/// Has the running proxy read its configuration again.
struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Have the running proxy read its configuration again.",
        discussion: """
            A good one is taken up as a whole: requests that begin from then on go by it, those under way end by the one \
            before. Tokens, connections and counters of what did not change are kept. Waits until it is in use, and \
            says what has changed.

            Where it is wrong the one before stays in use, its problems are printed with file, line and column, and the \
            exit code is 78. What can't change while the proxy runs is such a problem, too: proxy.threads, \
            admin, store, log.format and playground.

            SIGHUP does the same, and its log says how it went.
            """)

    @OptionGroup var options: AdminOptions

    func run() throws {
        let answer = try options.askTheOldOne("POST", "/reload")
        guard answer.status != 200 else {
            OutputDescriptor.standardOutput.write(answer.body)
            return
        }
        Complaint.answer(String(decoding: answer.body, as: UTF8.self))
        throw (answer.status == 422 ? ExitStatus.badConfiguration : .failure).error
    }
}
