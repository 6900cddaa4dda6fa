import ArgumentParser

struct ReloadCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "reload",
        abstract: "Have the running proxy read its configuration again.",
        discussion: """
            A valid configuration comes into use as a whole. New requests use it; requests under way end with the former \
            one. Unchanged clients and upstreams keep their tokens, connections and counters. The command waits until the \
            configuration is in use, and prints the changes.

            If it is wrong, the former one stays in use. The command prints each problem with file, line and column, and \
            its exit code is 78. A change of proxy.threads, admin, store, log.format or playground is such a problem: it \
            needs a restart.

            SIGHUP does the same, and the log has the outcome.
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
