import ArgumentParser
import Configuration
import Glibc
import WireText

struct HealthCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Say whether the running proxy is ready, by the exit code: 0 or 1.",
        discussion: """
            For HEALTHCHECK of a container image, and for probes that run a command. Asks the admin port \
            of the configuration, or, without an answer, the admin socket. Prints one line. It finds the configuration \
            as serve does, and reads no secret in it.

            With --wait it asks again until the proxy is ready, for scripts that start the proxy. If the time ends \
            first, the exit code is 1.

            Without an admin section --live is the default: whether the proxy accepts connections and its event loop \
            runs. --ready and --strict fail, because they need the admin port.
            """)

    @OptionGroup var admin: AdminOptions

    @Flag(exclusivity: .exclusive, help: "What to ask. --ready is the default, if there is an admin section.")
    var question: Question?

    @Option(help: ArgumentHelp("Time limit for an answer, 1 to 60.", valueName: "seconds"))
    var timeout = 4

    @Option(
        help: ArgumentHelp(
            "Ask again until the proxy is ready, for this time at most: 1 to 3600.", valueName: "seconds"))
    var wait: Int?

    /// The question to the proxy. The raw value is the target of the request.
    enum Question: String, EnumerableFlag {
        case live = "/livez"
        case ready = "/readyz"
        case strict = "/readyz?strict"

        static func help(for value: Question) -> ArgumentHelp? {
            switch value {
            case .live: "Whether the proxy's event loops run."
            case .ready: "Also whether each client that needs no sign-in has had an answer of its authorization server."
            case .strict: "Also whether nothing is degraded: each client has a token, the store can be written."
            }
        }
    }

    func validate() throws {
        guard (1...60).contains(timeout) else { throw ValidationError("--timeout takes 1 to 60 seconds") }
        guard wait.map({ (1...3600).contains($0) }) ?? true else {
            throw ValidationError("--wait takes 1 to 3600 seconds")
        }
    }

    private static let pause: UInt32 = 100_000
    private static let advice = "; start the proxy, or give the running one's --config or --socket"

    func run() throws {
        let deadline = ContinuousClock.now + .seconds(wait ?? 0)
        var outcome = outcome(timeout)
        while !outcome.isGood, outcome.mayChange {
            let left = ContinuousClock.now.duration(to: deadline)
            guard left > .zero else { break }
            usleep(Self.pause)
            outcome = self.outcome(min(timeout, Int(left.components.seconds) + 1))
        }
        guard outcome.isGood else {
            ErrorOutput.answer(outcome.line)
            throw ExitStatus.failure.error
        }
        CommandOutput.write(outcome.line + "\n")
    }

    private func outcome(_ timeout: Int) -> HealthOutcome {
        let target = (question ?? .ready).rawValue
        if let socket = admin.socket { return ask([.unix(path: socket, mode: nil)], target, timeout) }
        guard let (source, environment) = try? admin.options.choose() else {
            return .impossible(
                "no configuration says where the proxy is: give --config PATH or --socket PATH, or set HEIMDALLR_UPSTREAM"
            )
        }
        do throws(ConfigurationError) {
            if let settings = try source.admin(environment) {
                // The port comes first, because it answers any user of the machine. The socket answers only the proxy's
                // user. For port 0 the kernel chose a port that is not known here.
                let ports = settings.listen.isChosenByKernel ? [] : [settings.listen]
                let sockets = AdminOptions.sockets(of: settings, environment: environment)
                return ask(ports + sockets.map { .unix(path: $0, mode: nil) }, target, timeout)
            }
            let listeners = try source.proxyListeners(environment)
            guard question == nil || question == .live else {
                return .impossible(
                    "the configuration has no admin section, so the proxy can't be asked; write admin: {} into it")
            }
            return knock(at: listeners, timeout)
        } catch {
            return .bad(error.problems.first.map { "\($0)" } ?? "the configuration can't be read")
        }
    }

    /// Asks the addresses in turn. The first answer with the status 200 or 503 decides.
    private func ask(_ targets: [ListenAddress], _ request: String, _ timeout: Int) -> HealthOutcome {
        var reasons: [String] = []
        var isAnswered = false
        for target in targets {
            do throws(AdminClient.Failure) {
                let answer = try AdminClient(address: target, timeout: timeout).send("GET", request)
                let text = String(decoding: answer.body, as: UTF8.self)
                isAnswered = true
                switch answer.status {
                case 200: return .good(text)
                case 503: return .bad(text)
                default: reasons.append("\(target) answers \(answer.status): is it the proxy's admin port?")
                }
            } catch {
                switch error {
                case .notListening(let cause): reasons.append("\(target): nobody listens (\(cause))")
                case .stranger(let sentence), .other(let sentence):
                    isAnswered = true
                    reasons.append("\(target): \(sentence)")
                }
            }
        }
        return .bad(
            reasons.isEmpty
                ? "there is no address to ask: give --socket"
                : reasons.joined(separator: "; ") + (isAnswered ? "" : Self.advice))
    }

    /// Checks whether the proxy serves a listener: connects, ends its side, and waits until the proxy's event loop ends
    /// the other side. This connection is not logged or counted, because it has no request.
    private func knock(at addresses: [ListenAddress], _ timeout: Int) -> HealthOutcome {
        var reasons: [String] = []
        for address in addresses where !address.isChosenByKernel {
            do throws(SystemCallError) {
                let connection = try SocketConnection(to: address, timeout: timeout)
                connection.endSending()
                guard connection.receiveAll(limit: 64 * 1024, within: .seconds(timeout)) != nil else {
                    reasons.append("\(address): nobody serves the connection within \(timeout) s")
                    continue
                }
                return .good("the proxy serves \(address); without an admin section nothing else is known")
            } catch { reasons.append("\(address): \(error.sentence)\(error.isNotListening ? Self.advice : "")") }
        }
        return .bad(
            reasons.isEmpty
                ? "the kernel chose the listener's port, so it is not known here: write admin: {} into the configuration"
                : reasons.joined(separator: "; "))
    }
}

struct HealthOutcome {
    let isGood: Bool
    let line: String
    /// Whether a later attempt may give another result.
    let mayChange: Bool

    static func good(_ text: String) -> HealthOutcome { .init(text, isGood: true) }
    static func bad(_ text: String) -> HealthOutcome { .init(text, isGood: false) }
    /// No later attempt can succeed.
    static func impossible(_ text: String) -> HealthOutcome { .init(text, isGood: false, mayChange: false) }

    /// Makes foreign text printable and short.
    private init(_ text: String, isGood: Bool, mayChange: Bool = true) {
        let shown = ForeignText.printable(text.split(separator: "\n").joined(separator: "; "), most: 400)
        line = shown.isEmpty ? "the answer is empty" : shown
        self.isGood = isGood
        self.mayChange = mayChange
    }
}
