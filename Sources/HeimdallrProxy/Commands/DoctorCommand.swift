import ArgumentParser
import Configuration
import Playground
import Reactor
import WireText

struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Find faults between the proxy and its servers, and say what to do about them.",
        discussion: """
            Needs no running proxy. Looks up the name of each client's servers and of each upstream, and checks \
            whether the proxy may connect to the addresses. It connects to each address (at most four of a name), with \
            TLS for https://. For a client it also reads the server's metadata and requests one token. To an upstream \
            it sends a HEAD without a token. It compares the clocks, and checks the secrets, the modes of their files, \
            the token store and interception. The checks run concurrently, each with a time limit.

            doctor requests tokens like the proxy, never shows them, and discards them. A refresh token or a sign-in \
            can be used only once, so doctor does not use them. With --no-token it requests no tokens. With --try-keys \
            it also sends each upstream a HEAD with its fixed key (inject), to see whether the API takes it.

            The exit code is 0 when all is well (warnings do not count), 1 when something is wrong, 2 for wrong usage, \
            78 for a wrong configuration.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Argument(
        help: ArgumentHelp("Clients, and hosts of upstreams.", discussion: "Default: all of them.", valueName: "name"))
    var names: [String] = []

    @Flag(help: "Print JSON for programs.")
    var json = false

    @Flag(name: .customLong("no-token"), help: "Request no tokens.")
    var asksForNoToken = false

    @Flag(help: "Send the fixed keys of upstreams in a HEAD, too.")
    var tryKeys = false

    func run() async throws {
        let (source, environment, playground) = try await options.chooseWithPlayground()
        let settings = try source.load(environment: environment)
        let known = settings.clients.map(\.name) + settings.upstreams.map(\.host.description)
        for name in names where !known.contains(name) {
            let meant = Suggestion.phrase(Suggestion.nearest(to: name, among: known))
            let advice = meant.isEmpty ? ": give a name under `clients`, or the `host` of an upstream" : meant
            throw ValidationError("there is no client or upstream \"\(name)\"\(advice)")
        }
        let diagnoses: [Diagnosis]
        do {
            var doctor = Doctor(
                source: source, configuration: settings, names: names, asksForTokens: !asksForNoToken)
            doctor.triesKeys = tryKeys
            diagnoses = try await doctor.diagnoses { done, all in
                Terminal.showProgress("Checking: \(done) of \(all) done …")
            }
        } catch { throw ExitStatus.failure.error("the checks can't start: \(error)") }
        Terminal.showProgress("")
        await playground?.stop()
        let findings = diagnoses.flatMap(\.findings)
        let failed = findings.count { $0.outcome == .failed }
        let warnings = findings.count { $0.outcome == .warning }
        CommandOutput.write(
            json ? Self.json(diagnoses, failed, warnings) : Self.text(diagnoses, failed, warnings))
        if failed > 0 { throw ExitStatus.failure.error }
    }

    private static func text(_ diagnoses: [Diagnosis], _ failed: Int, _ warnings: Int) -> String {
        var text = diagnoses.map(\.text).joined(separator: "\n") + "\n"
        text += failed == 0 ? "Nothing is wrong" : failed == 1 ? "One thing is wrong" : "\(failed) things are wrong"
        if warnings > 0 { text += "; \(warnings.counted("warning"))" }
        return text + ".\n"
    }

    private static func json(_ diagnoses: [Diagnosis], _ failed: Int, _ warnings: Int) -> String {
        let json: JSON = [
            "ok": .bool(failed == 0), "failed": .number(failed), "warnings": .number(warnings),
            "subjects": .array(diagnoses.map(\.json)),
        ]
        return json.document
    }
}
