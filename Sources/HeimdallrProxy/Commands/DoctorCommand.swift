import ArgumentParser
import Configuration
import Playground
import WireText

/// Says what is wrong between here and the servers, and what to do about it.
struct DoctorCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "doctor",
        abstract: "Find out what is wrong between here and the servers, and what to do about it.",
        discussion: """
            Needs no running proxy. For each client and each upstream: the name's addresses, whether the proxy may go \
            there, TCP to each address, TLS with the certificate; for clients also the server's metadata, one token and \
            the server's clock; for upstreams a HEAD without a token. Besides: secrets, their files' modes, the token \
            store. All at once, and no step takes longer than its own time limit.

            Tokens are fetched as the proxy fetches them, never shown, and thrown away. What can be used only once is \
            not: a refresh token, a sign-in. With --no-token no token is asked for at all.

            The exit code is 0 when all is well (warnings do not count), 1 when something is wrong, 2 for wrong usage, \
            78 for a wrong configuration.
            """)

    @OptionGroup var options: ConfigurationOptions

    @Argument(
        help: ArgumentHelp("Clients, and hosts of upstreams.", discussion: "Default: all.", valueName: "name"))
    var names: [String] = []

    @Flag(help: "As JSON, for programs.")
    var json = false

    @Flag(name: .customLong("no-token"), help: "Ask for no tokens.")
    var asksForNoToken = false

    func run() async throws {
        var environment = ProcessEnvironment.all
        let source = try ConfigurationSource.choose(named: options.config, environment: environment)
        let playground: Playground? =
            source.wantsPlayground ? try await PlaygroundVariables.start(addingTo: &environment) : nil
        let settings = try source.load(environment: environment)
        let progress = DoctorProgress()
        var diagnoses: [Diagnosis]
        do {
            let doctor = Doctor(configuration: settings, names: names, asksForTokens: !asksForNoToken)
            diagnoses = try await doctor.diagnoses { progress.show($0, of: $1) }
        } catch Doctor.Fault.unknown(let name, let known) {
            let meant = Suggestion.phrase(Suggestion.nearest(to: name, among: known))
            throw ValidationError("there is no client or upstream \"\(name)\"\(meant)")
        } catch {
            Complaint.error(
                "nothing can be looked at: \(error)")
            throw ExitStatus.failure.error
        }
        progress.end()
        await playground?.stop()
        if names.isEmpty {
            let surroundings = SurroundingsCheck(source: source, configuration: settings)
            diagnoses[0].parts[0].findings += await BlockingWork.run { surroundings.findings }
        }
        let findings = diagnoses.flatMap(\.findings)
        let failed = findings.count { $0.outcome == .failed }
        let warnings = findings.count { $0.outcome == .warning }
        OutputDescriptor.standardOutput.write(
            json ? Self.json(diagnoses, failed, warnings) : Self.text(diagnoses, failed, warnings))
        if failed > 0 { throw ExitStatus.failure.error }
    }

    private static func text(_ diagnoses: [Diagnosis], _ failed: Int, _ warnings: Int) -> String {
        var text = diagnoses.map(\.text).joined(separator: "\n")
        text += "\n"
        text += failed == 0 ? "Nothing is wrong" : failed == 1 ? "One thing is wrong" : "\(failed) things are wrong"
        if warnings > 0 { text += "; \(warnings.counted("warning"))" }
        return text + ".\n"
    }

    private static func json(_ diagnoses: [Diagnosis], _ failed: Int, _ warnings: Int) -> String {
        JSON.object([
            .init("ok", .bool(failed == 0)), .init("failed", .number(failed)), .init("warnings", .number(warnings)),
            .init("subjects", .array(diagnoses.map(\.json))),
        ]).document
    }
}

/// How far it is, for who watches.
private struct DoctorProgress: Sendable {
    private let isShown = Terminal.showsErrors

    func show(_ done: Int, of all: Int) {
        guard isShown else { return }
        OutputDescriptor.standardError.write("\r\u{1B}[KLooking: \(done) of \(all) done …")
    }

    func end() {
        if isShown { OutputDescriptor.standardError.write("\r\u{1B}[K") }
    }
}
