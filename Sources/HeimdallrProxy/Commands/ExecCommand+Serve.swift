import ArgumentParser
import Configuration
import Enclosure
import Logging
import Playground
import Reactor

extension ExecCommand {
    /// Starts a proxy in this process, runs the program as a child, and exits with the program's exit code.
    func runServed(_ start: StartState) async throws {
        do throws(DescriptorShortage) { try DescriptorShortage.checkStart() } catch {
            throw ExitStatus.failure.error("\(error)")
        }
        let (source, environment, playground) = try await options.chooseWithPlayground()
        let freshness = ConfigurationFreshness(source)
        freshness.note()
        let level = try logLevel.map { try LogLevel.read($0, for: nil).level }
        let loaded = try source.load(environment: environment, logs: true)
        let removing = ChildEnvironment.withheld(from: environment.keys, loaded)
        let credentials = try credentials(loaded, environment)
        let enclosed = enclose ? try enclosedChild(loaded, removing, start) : nil
        let settings = loaded.forOneProgram(level, isEnclosed: enclose)
        let log = LogSetUp.bootstrap(settings.log, to: try openedLog())
        defer { log.writer.flush() }
        let served = ServedProgram()
        do {
            let app = App(
                configuration: settings, log: log,
                read: { [environment, isEnclosed = enclose] () throws(ConfigurationError) in
                    freshness.note()
                    let (settings, warnings) = try source.readAgain(environment: environment, passed: [])
                    return (settings.forOneProgram(level, isEnclosed: isEnclosed), warnings)
                }, quit: served.terminate, freshness: freshness, isForOneProgram: true)
            try await app.run(until: served.stops, reloading: AsyncStream { $0.finish() }) { running in
                let trust = try running.shared.interception.writtenFiles()
                let port = enclose ? EnclosedProgram.proxyPort : running.port
                var known = settings
                known.proxy.listen = [.tcp(host: "127.0.0.1", port: port)]
                let setting = try Self.variables(
                    proxy: "\(enclose ? "" : credentials)127.0.0.1:\(port)", known, environment, trust: trust,
                    isEnclosed: enclose)
                guard let enclosed else {
                    return served.start {
                        try ChildProgram(program, setting: setting, removing: removing, as: start)
                    }
                }
                try await enclosed.program.serve(
                    by: running.server, user: user, on: try EventLoop.start(name: "enclosure"), log.logger)
                let mounts = HiddenPaths.mounts(
                    settings, file: source.file, environment: environment, trust: trust?.folder)
                served.start { try enclosed.start(setting: setting, mounts) }
            }
        } catch let code as ExitCode {
            // The fault was printed.
            await playground?.stop()
            throw code
        } catch {
            log.logger.error("the proxy could not start", metadata: ["reason": "\(error)"])
            await playground?.stop()
            throw await ExitStatus(ofStart: error, settings, from: source).error
        }
        await playground?.stop()
        log.writer.flush()
        do {
            ProcessHygiene.end(try served.exitCode())
        } catch let fault as SystemCallError {
            throw exitCode(of: fault)
        }
    }

    private func openedLog() throws -> AppendedFile? {
        guard let logFile else { return nil }
        do throws(AuditFault) {
            return try AppendedFile(path: logFile) { failure in
                if let failure { ErrorOutput.warning("the log file can't be written: \(failure.sentence)") }
            }
        } catch {
            var fault = error
            fault.setting = "--log-file"
            throw ExitStatus.failure.error("\(fault)")
        }
    }

    private func enclosedChild(
        _ settings: Configuration, _ removing: Set<String>, _ start: StartState
    ) throws -> EnclosedChild {
        Self.warnRoot()
        do throws(EnclosureRefusal) {
            return try EnclosedChild(
                program, allowed: allowed, settings, removing: removing.union(EnclosedProgram.foreignProxies), as: start
            )
        } catch { throw EnclosedChild.notEnclosed(error) }
    }
}

extension Configuration {
    /// Returns this configuration for a proxy of one program alone: with a free port, and with a quiet log.
    /// - Parameters:
    ///   - level: log level; `nil` chooses the configured level, but at least `warning`.
    fileprivate func forOneProgram(
        _ level: LogSettings.Level?, isEnclosed: Bool
    ) -> Configuration {
        var settings = self
        let listener = ListenAddress.tcp(host: "127.0.0.1", port: isEnclosed ? EnclosedProgram.proxyPort : 0)
        // Rules for the listener that the program would use without --serve apply to the new listener.
        if let former = proxy.listen.first(where: { !$0.isUnix }) {
            for index in upstreams.indices {
                settings.upstreams[index].callers.listeners = upstreams[index].callers.listeners.map {
                    $0 == former ? listener : $0
                }
            }
        }
        // An enclosed program finds the proxy inside, and nobody else does.
        settings.proxy.listen = isEnclosed ? [] : [listener]
        settings.proxy.listenerTLS = [:]
        // No load balancer uses this proxy.
        settings.proxy.drainDelay = .zero
        settings.log.level = level ?? (Logger.Level(log.level) < .warning ? .warning : log.level)
        settings.log.access = log.access && Logger.Level(settings.log.level) <= .info
        return settings
    }
}
