import ArgumentParser
import Configuration
import Logging
import Playground
import WireText

struct DemoCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "demo",
        abstract: "See it work: one request without and with the proxy. Needs nothing.",
        discussion: """
            Starts an authorization server, an API that requires a token, and the proxy on free ports of this machine. \
            Sends the API the same request directly and through the proxy, shows both answers, and ends. The exit code \
            is 0 when the API refused the first and answered the second.
            """)

    func run() async throws {
        var environment = ProcessEnvironment.all
        let playground = try await PlaygroundVariables.start(addingTo: &environment)
        let (settings, _) = try Configuration.parse(yaml: Self.settings, file: "demo", environment: environment)
        let log = LogSetUp.bootstrap(settings.log)
        let app = try await App(configuration: settings, log: log).start { (settings, []) }

        let outcome: Result<Bool, any Error>
        do {
            outcome = .success(try await Self.compare(api: playground.apiAuthority, proxy: app.addresses.first ?? ""))
        } catch {
            outcome = .failure(error)
        }
        await app.stop()
        await playground.stop()
        log.writer.flush()

        switch outcome {
        case .success(true): return
        case .success(false):
            OutputDescriptor.standardError.write("The demo failed: see the answers above.\n")
        case .failure(let error):
            OutputDescriptor.standardError.write("The demo failed: \(error)\n")
        }
        throw ExitStatus.failure.error
    }

    /// - Returns: whether the API refused the request without the proxy and answered the one through it.
    private static func compare(api: String, proxy: String) async throws -> Bool {
        let output = OutputDescriptor.standardOutput
        output.write("An API on this machine wants an OAuth token. A program that has none asks it:\n\n")
        let direct = DemoRequest(connectTo: api, target: "/hello", host: PlaygroundHint.host)
        output.write("1. without the proxy:  curl http://\(api)/hello\n\n")
        let refused = try await direct.send()
        output.write(refused.shown + "\n")

        let proxied = DemoRequest(connectTo: proxy, target: PlaygroundHint.url, host: PlaygroundHint.host)
        output.write("2. the same request, through heimdallr-proxy:  \(PlaygroundHint.command(proxy: proxy))\n\n")
        let answered = try await proxied.send()
        output.write(answered.shown + "\n")

        guard refused.status == 401, answered.status == 200 else { return false }
        output.write(
            """
            The program sent no token either time. The proxy got one from the authorization server, put it on the
            request, and will renew it before it expires. To try it yourself, with the config.yaml of this project:

                heimdallr-proxy --config config.yaml

            """)
        return true
    }

    /// The configuration of a user for the same, apart from the port.
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
}

/// One request of a simple program: bytes over a connection, without any code of the proxy.
struct DemoRequest: Sendable {
    /// `127.0.0.1:PORT`.
    let connectTo: String
    /// A path, or for a proxy a whole URL (RFC 9112, section 3.2).
    let target: String
    let host: String

    func send() async throws -> DemoAnswer {
        try await BlockingWork.run { Result { try exchange() } }.get()
    }

    private func exchange() throws(DemoError) -> DemoAnswer {
        guard let port = connectTo.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw DemoError(description: "\(connectTo) is not an address and port of this machine")
        }
        let peer = "port \(port) of this machine"
        let request = "GET \(target) HTTP/1.1\r\nHost: \(host)\r\nAccept: application/json\r\nConnection: close\r\n\r\n"
        let connection: SocketConnection
        do throws(SystemCallError) {
            connection = try SocketConnection(to: .tcp(host: "127.0.0.1", port: port), timeout: 10)
        } catch {
            throw DemoError(description: "no connection to \(peer) (errno \(error.number))")
        }
        guard connection.send(Array(request.utf8)),
            let bytes = connection.receiveAll(limit: 1 << 20, within: .seconds(10))
        else { throw DemoError(description: "\(peer) did not answer within 10 seconds") }
        guard let answer = DemoAnswer(bytes) else {
            throw DemoError(description: "\(peer) answered with something that is not HTTP")
        }
        return answer
    }
}

struct DemoAnswer: Sendable {
    let status: Int
    /// The status line, the fields that matter here, and the body; indented.
    let shown: String

    init?(_ bytes: [UInt8]) {
        let text = String(decoding: bytes, as: UTF8.self)
        guard let end = text.firstRange(of: "\r\n\r\n") else { return nil }
        let lines = text[..<end.lowerBound].split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let status = Int(words[1]) else { return nil }
        self.status = status
        let telling = ["www-authenticate:", "proxy-status:", "content-type:"]
        var shown = lines.prefix(1).map(String.init)
        shown += lines.dropFirst().filter { line in telling.contains { line.lowercased().hasPrefix($0) } }.map(
            String.init)
        shown.append("")
        shown += text[end.upperBound...].split(separator: "\n").map(String.init)
        self.shown = shown.map { $0.isEmpty ? "\n" : "     \(ForeignText.printable($0, most: 1000))\n" }.joined()
    }
}

/// A fault between the demo and its servers.
struct DemoError: Error, CustomStringConvertible {
    let description: String
}
