import ArgumentParser
import Configuration
import Glibc
import WireText

struct HealthCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "health",
        abstract: "Say whether the running proxy is ready, by the exit code: 0 or 1.",
        discussion: """
            For HEALTHCHECK of a container image, and for probes that run a command. Asks the admin port of the \
            configuration, or else its socket, and prints one line. It finds the configuration as serve does, and reads no \
            secret in it.

            With --wait it asks again until the answer is good, for scripts that start the proxy. The exit code is 1 after \
            that time.

            Without an admin section it reports whether the proxy accepts connections and its loop turns. With --ready or \
            --strict it then fails, because that needs the admin port.
            """)

    @OptionGroup var admin: AdminOptions

    @Flag(exclusivity: .exclusive, help: "What to ask; --ready is the default.")
    var question: Question?

    @Option(help: ArgumentHelp("How long to wait, 1 to 60.", valueName: "seconds"))
    var timeout = 4

    @Option(
        help: ArgumentHelp(
            "Ask again until the answer is good, for this time at most: 1 to 3600.", valueName: "seconds"))
    var wait: Int?

    enum Question: EnumerableFlag {
        case live, ready, strict

        static func help(for value: Question) -> ArgumentHelp? {
            switch value {
            case .live: "Whether its loops turn."
            case .ready: "Also whether each client that needs nobody to sign in has had its first answer."
            case .strict: "Also whether nothing is degraded: each client has a token, the store can be written."
            }
        }

        var target: String {
            switch self {
            case .live: "/livez"
            case .ready: "/readyz"
            case .strict: "/readyz?strict"
            }
        }
    }

    func validate() throws {
        guard (1...60).contains(timeout) else { throw ValidationError("--timeout takes 1 to 60 seconds") }
        guard wait.map({ (1...3600).contains($0) }) ?? true else {
            throw ValidationError("--wait takes 1 to 3600 seconds")
        }
    }

    /// How long `--wait` rests between two questions.
    private static let pause: UInt32 = 100_000

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
            Complaint.answer(outcome.line)
            throw ExitStatus.failure.error
        }
        OutputDescriptor.standardOutput.write(outcome.line + "\n")
    }

    private func outcome(_ timeout: Int) -> HealthOutcome {
        let probe = HealthProbe(timeout: timeout)
        if let socket = admin.socket { return probe.ask([.unix(path: socket, mode: nil)], (question ?? .ready).target) }
        guard let (source, environment) = try? admin.options.named.choose() else {
            return .impossible(
                "no configuration says where the proxy is: give --config PATH or --socket PATH, or set HEIMDALLR_UPSTREAM"
            )
        }
        switch HealthTargets(source, environment: environment) {
        case .unknown(let reason): return .bad(reason)
        case .administration(let targets): return probe.ask(targets, (question ?? .ready).target)
        case .listeners(let addresses):
            guard question == nil || question == .live else {
                return .impossible(
                    "the configuration has no admin section, so the proxy can't be asked; write admin: {} into it")
            }
            return probe.knock(at: addresses)
        }
    }
}

/// The result: one line.
struct HealthOutcome: Equatable {
    var isGood: Bool
    var line: String
    /// Whether a later attempt may give another result.
    var mayChange = true

    static func good(_ text: String) -> HealthOutcome { .init(isGood: true, line: oneLine(text)) }
    static func bad(_ text: String) -> HealthOutcome { .init(isGood: false, line: oneLine(text)) }

    /// No later attempt can succeed.
    static func impossible(_ text: String) -> HealthOutcome {
        .init(isGood: false, line: oneLine(text), mayChange: false)
    }

    private static let limit = 400

    /// Makes foreign text printable and short.
    private static func oneLine(_ text: String) -> String {
        let shown = ForeignText.printable(text.split(separator: "\n").joined(separator: "; "), most: limit)
        return shown.isEmpty ? "the answer is empty" : shown
    }
}
