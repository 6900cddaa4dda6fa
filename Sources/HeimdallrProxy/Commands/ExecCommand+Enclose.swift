import ArgumentParser
import Configuration
import Enclosure
import Proxy

extension ExecCommand {
    /// Replaces this process by one that encloses itself, which the running proxy serves, and becomes the program. Called
    /// with a single thread.
    /// - Returns: the exit code, after printing the fault.
    func runEnclosed(_ settings: Configuration, _ environment: [String: String]) throws -> ExitCode {
        // Reads the user's secret: only who may read it can be that user.
        _ = try credentials(settings, environment)
        let link = try Self.link(settings, environment)
        Self.warnRoot()
        var known = settings
        known.proxy.listen = [.tcp(host: "127.0.0.1", port: EnclosedProgram.proxyPort)]
        let trust: TrustFiles?
        do { trust = settings.interceptedNames.isEmpty ? nil : try .written(for: settings, environment) } catch {
            throw ExitStatus.failure.error("the proxy's certificates: \(error)")
        }
        let variables = try Self.variables(
            proxy: "127.0.0.1:\(EnclosedProgram.proxyPort)", known, environment, trust: trust, isEnclosed: true)
        let mounts = HiddenPaths.mounts(
            settings, file: try options.choose().source.file, environment: environment, trust: trust?.folder)
        let greeting = EnclosureGreeting(user: user, allowed: allowed, mounts: mounts)
        guard Enclosure.greet(link, greeting.words) else {
            return ExitStatus.failure.error("the running proxy has closed the connection; try again")
        }
        let failure = ProgramExecution.replaceProcess(
            EnclosedStart.words(.proxy, link: link, program), executable: CommandKeeper.executable,
            setting: variables,
            removing: ChildEnvironment.withheld(from: environment.keys, settings).union(EnclosedProgram.foreignProxies))
        return ExitStatus.notEnclosed.error("\(EnclosedChild.refusal): \(failure.advice)")
    }

    /// Says what the enclosure does not hold for root.
    static func warnRoot() {
        guard ProcessIdentity.user == 0 else { return }
        ErrorOutput.warning(
            "an enclosed program of root keeps root's rights over files, devices and sockets: for it the enclosure stops "
                + "mistakes, not attacks. Start it as another user")
    }

    /// Connects to the running proxy.
    private static func link(_ settings: Configuration, _ environment: [String: String]) throws -> Int32 {
        guard let admin = settings.admin else {
            throw ExitStatus.failure.error(
                "the configuration has no admin section, so a running proxy has no socket for --enclose: write admin: {} "
                    + "into it, or add --serve")
        }
        var fault: SystemCallError?
        for socket in AdminOptions.sockets(of: admin, environment: environment) {
            do throws(SystemCallError) {
                let path = EnclosureService.path(beside: socket)
                let connection = try SocketConnection(to: .unix(path: path, mode: nil), timeout: 30)
                // Another user's process could serve the program its own answers.
                guard [ProcessIdentity.user, 0].contains(connection.peer()) else { continue }
                return connection.inherited()
            } catch {
                if fault == nil || !error.isNotListening { fault = error }
            }
        }
        let reason = fault.map { $0.isNotListening ? "" : " (\($0.advice))" } ?? ""
        throw ExitStatus.failure.error(
            "no running proxy of this user takes programs of --enclose\(reason): start it first, or add --serve")
    }
}
