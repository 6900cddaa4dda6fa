import ArgumentParser
import Configuration
import Logging
import Playground

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
        let settings = try source.load(environment: environment, logs: true).forOneProgram(level)
        let credentials = try credentials(settings, environment)
        let log = LogSetUp.bootstrap(settings.log)
        defer { log.writer.flush() }
        let served = ServedProgram()
        do {
            let app = App(
                configuration: settings, log: log,
                read: { [environment] () throws(ConfigurationError) in
                    freshness.note()
                    let (settings, warnings) = try source.readAgain(environment: environment, passed: [])
                    return (settings.forOneProgram(level), warnings)
                }, quit: served.terminate, freshness: freshness, isForOneProgram: true)
            try await app.run(until: served.stops, reloading: AsyncStream { $0.finish() }) { running in
                var known = settings
                known.proxy.listen = [.tcp(host: "127.0.0.1", port: running.port)]
                let trust = try running.shared.interception.writtenFiles()
                served.start(
                    program,
                    setting: try Self.variables(
                        proxy: "\(credentials)127.0.0.1:\(running.port)", known, environment,
                        trust: trust),
                    removing: ChildEnvironment.withheld(from: environment.keys, settings), as: start)
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
        do throws(SystemCallError) {
            ProcessHygiene.end(try served.exitCode())
        } catch { throw exitCode(of: error) }
    }
}

extension Configuration {
    /// Returns this configuration for a proxy of one program alone: with a free port, and with a quiet log.
    /// - Parameter level: log level; `nil` chooses the configured level, but at least `warning`.
    fileprivate func forOneProgram(_ level: LogSettings.Level?) -> Configuration {
        var settings = self
        let listener = ListenAddress.tcp(host: "127.0.0.1", port: 0)
        // Rules for the listener that the program would use without --serve apply to the new listener.
        if let former = proxy.listen.first(where: { if case .tcp = $0 { true } else { false } }) {
            for index in upstreams.indices {
                settings.upstreams[index].callers.listeners = upstreams[index].callers.listeners.map {
                    $0 == former ? listener : $0
                }
            }
        }
        settings.proxy.listen = [listener]
        settings.proxy.listenerTLS = [:]
        // No load balancer uses this proxy.
        settings.proxy.drainDelay = .zero
        settings.log.level = level ?? (Logger.Level(log.level) < .warning ? .warning : log.level)
        settings.log.access = log.access && Logger.Level(settings.log.level) <= .info
        return settings
    }
}
