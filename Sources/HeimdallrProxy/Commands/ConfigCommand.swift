import ArgumentParser
import Configuration
import WireText

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Facts about configuration files.",
        discussion: "`heimdallr-proxy check --config FILE` checks one file.",
        subcommands: [Schema.self])

    struct Schema: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "schema",
            abstract: "Print a JSON Schema of the configuration, for editors.",
            discussion: """
                The schema (draft 2020-12) is that of this version. Editors with a YAML language server complete and \
                check the file with it:

                  heimdallr-proxy config schema > heimdallr-proxy.schema.json

                and, as the first line of config.yaml:

                  # yaml-language-server: $schema=heimdallr-proxy.schema.json
                """)

        func run() throws {
            let text = Configuration.schema().text(.document, escaping: .required)
            guard OutputDescriptor.standardOutput.write(text) else { throw ExitStatus.failure.error }
        }
    }
}
