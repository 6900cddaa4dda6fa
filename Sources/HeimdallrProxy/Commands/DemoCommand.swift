import ArgumentParser
import Configuration
import HTTPMessage
import Logging
import Playground
import Reactor
import WireText

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "See it work: one request without and with the proxy. Needs nothing.",
        discussion: """
            Starts an authorization server, an API that requires a token, and the proxy on free ports of this machine. \
            Sends the API the same request directly and through the proxy, shows both answers, and ends. The exit code \
            is 0 if the API refused the first request and answered the second.
            """)

    func run() async throws {
        var environment = ProcessEnvironment.all
        let playground = try await PlaygroundVariables.start(addingTo: &environment)
        let (settings, _) = try Configuration.parse(yaml: Self.settings, file: "demo", environment: environment)
        let log = LogSetUp.bootstrap(settings.log)
        let app = try await App(configuration: settings, log: log, read: { (settings, []) }).start()

        var fault: String? = "see the answers above."
        do {
            if try await Self.compare(api: playground.apiAuthority, proxy: app.addresses.first ?? "") { fault = nil }
        } catch { fault = "\(error)" }
        await app.stop()
        await playground.stop()
        log.writer.flush()
        guard let fault else { return }
        OutputDescriptor.standardError.write("The demo failed: \(fault)\n")
        throw ExitStatus.failure.error
    }

    /// - Returns: whether the API refused the direct request and answered the request through the proxy.
    private static func compare(api: String, proxy: String) async throws -> Bool {
        let output = CommandOutput.self
        output.write("An API on this machine requires an OAuth token. A program without a token calls it:\n\n")
        output.write("1. without the proxy:  curl http://\(api)/hello\n\n")
        let refused = try await answer(of: api, to: "/hello")
        output.write(shown(refused) + "\n")

        output.write("2. the same request, through heimdallr-proxy:  \(PlaygroundHint.command(proxy: proxy))\n\n")
        let answered = try await answer(of: proxy, to: PlaygroundHint.url)
        output.write(shown(answered) + "\n")

        guard refused.status == 401, answered.status == 200 else { return false }
        output.write(
            """
            The program sent no token either time. The proxy got one from the authorization server, put it on the
            request, and will renew it before it expires. To try it yourself, with the config.yaml of this project:

                heimdallr-proxy --config config.yaml

            """)
        return true
    }

    /// The configuration that a user would write for this request, apart from the port.
    private static let settings = """
        playground: true
        proxy:
          listen: 127.0.0.1:0
        log:
          level: warning
          access: false
        clients:
          playground:
            token_endpoint: ${HEIMDALLR_PLAYGROUND_AUTH}/token
            client_id: ${HEIMDALLR_PLAYGROUND_CLIENT_ID}
            client_secret: {env: HEIMDALLR_PLAYGROUND_CLIENT_SECRET}
            allow_plaintext: true
        upstreams:
          - host: api.playground.test
            url: http://${HEIMDALLR_PLAYGROUND_API}
            client: playground
            allow_plaintext: true
        """

    /// Sends one request like a simple program: as bytes over a connection, without the proxy's HTTP code.
    /// - Parameters:
    ///   - authority: `127.0.0.1:PORT`.
    ///   - target: a path, or for a proxy a whole URL (RFC 9112, section 3.2).
    static func answer(of authority: String, to target: String) async throws -> AdminClient.Answer {
        guard let port = authority.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw DemoError(description: "\(authority) is not an address and port of this machine")
        }
        let peer = "port \(port) of this machine"
        let head = "GET \(target) HTTP/1.1\r\nHost: \(PlaygroundHint.host)\r\nAccept: application/json\r\n"
        return try await BlockingWork.run { () throws(DemoError) in
            let connection: SocketConnection
            do throws(SystemCallError) {
                connection = try SocketConnection(to: .tcp(host: "127.0.0.1", port: port), timeout: 10)
            } catch { throw DemoError(description: "no connection to \(peer) (errno \(error.number))") }
            guard connection.send(Array((head + "Connection: close\r\n\r\n").utf8)),
                let bytes = connection.receiveAll(limit: 1 << 20, within: .seconds(10))
            else { throw DemoError(description: "\(peer) did not answer within 10 seconds") }
            guard let answer = AdminClient.Answer(bytes) else {
                throw DemoError(description: "\(peer) answered with something that is not HTTP")
            }
            return answer
        }
    }

    /// The status line, the fields that matter here, and the body; indented.
    static func shown(_ answer: AdminClient.Answer) -> String {
        let names = ["www-authenticate:", "proxy-status:", "content-type:"]
        let head = String(decoding: answer.head.bytes, as: UTF8.self).split(separator: "\r\n")
        let fields = head.dropFirst().filter { line in names.contains { line.lowercased().hasPrefix($0) } }
        let body = String(decoding: answer.body, as: UTF8.self).split(separator: "\n")
        let lines = head[..<1] + fields + [""] + body
        return lines.map { $0.isEmpty ? "\n" : "     \(ForeignText.printable($0, most: 1000))\n" }.joined()
    }
}

struct DemoError: Error, CustomStringConvertible {
    let description: String
}
