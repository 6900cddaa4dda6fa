import ArgumentParser
import Configuration
import Cryptography
import FileSystem
import Glibc
import WireText

struct ConfigCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "config",
        abstract: "Information about configuration files.",
        discussion: "`heimdallr-proxy check --config FILE` checks one file.",
        subcommands: [Schema.self])

    struct Schema: ParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "schema",
            abstract: "Print a JSON Schema of the configuration, for editors.",
            discussion: """
                The schema (draft 2020-12) describes the keys of this version. Editors with a YAML language server \
                complete and check the file with it:

                  heimdallr-proxy config schema > heimdallr-proxy.schema.json

                and, as the first line of config.yaml:

                  # yaml-language-server: $schema=heimdallr-proxy.schema.json
                """)

        func run() throws {
            let text = Configuration.schema().text(.document, escaping: .required)
            CommandOutput.write(text)
        }
    }
}

struct KeygenCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "keygen",
        abstract: "Make a key for the token store.",
        discussion: """
            Prints 32 random bytes as base64, or writes them to a new file that only this user may read. It never \
            replaces a file, because tokens sealed with the old key would be lost.

              heimdallr-proxy keygen --output store.key
            """)

    @Option(name: .shortAndLong, help: "A new file for the key, mode 0600.", completion: .file())
    var output: String?

    func run() throws {
        var bytes = try RandomBytes.make(SealingKey.size)
        var text = Array((Base64.encode(bytes) + "\n").utf8)
        defer {
            SecretBytes.wipe(&bytes)
            SecretBytes.wipe(&text)
        }
        guard let output else {
            CommandOutput.write(text)
            return
        }
        do throws(FileSystem.Fault) {
            try FileSystem.create(output, with: text)
        } catch {
            var advice = ""
            if case .system(_, _, EEXIST) = error {
                advice = "; the file is not replaced, because tokens may be sealed with its key: name another file"
            }
            throw ExitStatus.failure.error("--output: \(error)\(advice)")
        }
    }
}
