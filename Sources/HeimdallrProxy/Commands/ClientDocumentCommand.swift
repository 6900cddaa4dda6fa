import Administration
import ArgumentParser
import Configuration
import Heimdallr

struct ClientDocumentCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "client-document",
        abstract: "Print the client ID metadata document of client: auto.",
        discussion: """
            Publish the output at the https:// address that client_document names. An authorization server that reads such \
            documents then identifies the proxy by that address, so nobody has to register it.

              heimdallr-proxy client-document > heimdallr-proxy.json
            """)

    @OptionGroup var options: ConfigurationOptions

    @Argument(help: "The address of the document, if the configuration has several.")
    var address: String?

    @Option(help: ArgumentHelp("Address of the client's public keys, with client_key.", valueName: "url"))
    var jwksURI: String?

    func run() throws {
        let settings = try options.load().settings
        let named = settings.clients.filter { client in
            client.auto?.clientDocument.map { address == nil || address == $0 } ?? false
        }
        guard let client = named.first, let identifier = client.auto?.clientDocument else {
            throw ExitStatus.failure.error(
                "no upstream with `client: auto` has \(address == nil ? "a" : "this") `client_document`: write the "
                    + "https:// address at which the document will be published under the upstream's `auto`")
        }
        guard named.allSatisfy({ $0.auto?.clientDocument == identifier }) else {
            throw ExitStatus.failure.error("there are several `client_document` addresses: give one as the argument")
        }
        let document = ClientDocument.json(
            identifier: identifier, name: "heimdallr-proxy", redirectURI: settings.redirectURI(of: client),
            keys: jwksURI)
        CommandOutput.write(document)
    }
}

extension Configuration {
    /// Returns the redirect URI of a client: the address to which the server sends the browser after a sign-in.
    func redirectURI(of client: ClientSettings) -> String {
        var address = (host: "127.0.0.1", port: UInt16(8081))
        if case .tcp(let host, let port)? = admin?.listen { address = (host, port) }
        return client.redirectURI
            ?? AdministrationSettings.redirectURI(host: address.host, port: address.port, url: admin?.url)
    }
}
