import Configuration
import Glibc
import Reactor

/// The service manager that started the process, such as systemd: its passed listening sockets (sd_listen_fds(3)), and
/// notifications to it (sd_notify(3)).
struct ServiceManager: Sendable {
    /// Variable with the number of passed sockets. Messages about unusable sockets name it.
    static let socketsVariable = "LISTEN_FDS"

    var passed: [PassedSocket] = []
    var notify: NotifySocket?
    /// Interval of watchdog notifications. Without them the manager kills the process.
    var watchdog: Duration?

    private static let variables = [
        socketsVariable, "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
    ]

    /// Reads the manager's variables and removes them from the environment. Called before the first thread starts.
    /// - Throws: `ExitStatus.badConfiguration`, after printing the faults of the sockets.
    static func take() throws -> ServiceManager {
        let environment = ProcessEnvironment.all
        for name in variables where environment[name] != nil { ProcessEnvironment.remove(name) }
        do throws(ConfigurationError) {
            return try ServiceManager(environment, process: getpid()) { descriptor, name throws(PassedSocket.Fault) in
                try PassedSocket(descriptor, name: name)
            }
        } catch {
            for problem in error.problems { ErrorOutput.error("\(problem)") }
            throw ExitStatus.badConfiguration.error
        }
    }

    init() {}

    /// - Parameter adopt: takes over the descriptor with this name.
    init(
        _ environment: [String: String], process: Int32,
        adopt: (_ descriptor: Int32, _ name: String) throws(PassedSocket.Fault) -> PassedSocket
    ) throws(ConfigurationError) {
        notify = environment["NOTIFY_SOCKET"].flatMap { NotifySocket($0) }
        watchdog = Self.watchdog(environment, process: process)
        // With another LISTEN_PID, the environment is inherited and the sockets were passed to that process.
        guard let count = environment[Self.socketsVariable], environment["LISTEN_PID"] == "\(process)" else { return }
        // Without this check, Int32 would accept a sign.
        guard count.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int32(count),
            (0...1024).contains(count)
        else {
            let message = "it is not a number of passed sockets: \(count.prefix(20))"
            throw ConfigurationError(problems: [.init(file: Self.socketsVariable, message: message)])
        }
        let names = (environment["LISTEN_FDNAMES"] ?? "").split(separator: ":", omittingEmptySubsequences: false)
        var problems: [ConfigurationError.Problem] = []
        for index in 0..<count {
            // SD_LISTEN_FDS_START
            let descriptor = 3 + index
            let name = Int(index) < names.count ? String(names[Int(index)]) : ""
            do throws(PassedSocket.Fault) {
                passed.append(try adopt(descriptor, name))
            } catch {
                let message = "descriptor \(descriptor) (FileDescriptorName=\(name)) can't be used: \(error)"
                problems.append(.init(file: Self.socketsVariable, message: message))
            }
        }
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    }

    /// Returns half of the manager's time limit; `nil` if this process has none. sd_watchdog_enabled(3).
    private static func watchdog(_ environment: [String: String], process: Int32) -> Duration? {
        if let other = environment["WATCHDOG_PID"], other != "\(process)" { return nil }
        guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 else {
            return nil
        }
        return .microseconds(microseconds) / 2
    }

    // MARK: Notifications

    /// Notifies the manager that the proxy accepts connections, or that a reload has ended, with success if `isGood`.
    func notifyReady(at addresses: [String], isGood: Bool = true) {
        let status = "Listening on " + addresses.joined(separator: ", ")
        let complaint = isGood ? "" : "; the new configuration is invalid, the former one stays in use"
        notify?.send("READY=1\nSTATUS=\(status)\(complaint)")
    }

    func notifyReloading() {
        let now = NotifySocket.monotonicMicroseconds
        notify?.send("RELOADING=1\nMONOTONIC_USEC=\(now)\nSTATUS=Reading the configuration again")
    }

    func notifyStopping() { notify?.send("STOPPING=1\nSTATUS=Finishing requests in flight") }

    /// Sends watchdog notifications while all event loops run; `nil` if the manager wants none.
    /// - Parameter pulse: returns after a turn of each event loop.
    func watch(_ pulse: @escaping @Sendable () async -> Void) -> Task<Void, Never>? {
        guard let notify, let watchdog else { return nil }
        return Task {
            repeat {
                await pulse()
                notify.send("WATCHDOG=1")
            } while (try? await Task.sleep(for: watchdog)) != nil
        }
    }
}
