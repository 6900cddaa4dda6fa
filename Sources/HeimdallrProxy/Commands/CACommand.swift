import ArgumentParser
import Configuration
import Cryptography
import Logging
import Proxy

struct CACommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ca",
        abstract: "The authority of intercepted TLS.",
        subcommands: [Export.self])

    struct Export: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "export",
            abstract: "Print the root certificates that programs have to trust, as PEM.",
            discussion: """
                With interception.directory it prints the roots in the directory, and creates missing ones. Otherwise \
                it prints the running proxy's roots, which end with that proxy. `heimdallr-proxy exec` needs no export.

                  heimdallr-proxy ca export > /usr/local/share/ca-certificates/heimdallr-proxy.crt

                With --folder it writes files for programs that trust only one file, readable by everybody: roots.pem has \
                the proxy's roots, bundle.pem the system's certificates too, and truststore.jks the same for Java.
                """)

        @OptionGroup var options: ConfigurationOptions

        @Option(help: ArgumentHelp("Write files into this folder instead.", valueName: "path"))
        var folder: String?

        func run() async throws {
            let (settings, environment) = try options.load()
            guard !settings.interceptedNames.isEmpty else {
                throw ExitStatus.failure.error(
                    settings.opensTLS
                        ? "every intercepted upstream has a configured certificate, so there is no authority: let programs "
                            + "trust the issuer of these certificates"
                        : "no upstream has `intercept: true`, so there is no authority: write it at an upstream whose "
                            + "programs say https://")
            }
            let roots: String
            do {
                if settings.interception?.store != nil {
                    let keeper = InterceptionKeeper(
                        secrets: SecretCache(settings), logger: Logger(label: "ca") { _ in SwiftLogNoOpLogHandler() })
                    let prepared = try await keeper.prepare(settings)
                    try await prepared.save()
                    roots = prepared.interception?.rootsPEM ?? ""
                } else {
                    roots = String(decoding: try TrustFiles.written(for: settings, environment).rootsPEM, as: UTF8.self)
                }
                if let folder { return try TrustFiles.export(roots: Array(roots.utf8), to: folder) }
            } catch { throw ExitStatus.failure.error("\(error)") }
            CommandOutput.write(roots)
        }
    }
}
