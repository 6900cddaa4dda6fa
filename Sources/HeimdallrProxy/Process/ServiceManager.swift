import Configuration
import Glibc
import Reactor

/// Who started the process and looks after it, systemd most likely: the listening sockets that it passed (sd_listen_fds(3)),
/// and what it wants to hear (sd_notify(3)).
struct ServiceManager: Sendable {
    static let none = ServiceManager()
    /// What problems with the sockets stand under.
    static let socketsVariable = "LISTEN_FDS"

    var passed: [PassedSocket] = []
    var notify: NotifySocket?
    /// How often a sign of life is due; without it the process is killed.
    var watchdog: Duration?

    private static let variables = [
        socketsVariable, "LISTEN_PID", "LISTEN_FDNAMES", "NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
    ]

    /// Reads the environment of this process, and takes out what is for nobody else. To be called before the first thread is
    /// started.
    /// - Throws: `ExitStatus.badConfiguration`, after it was printed what is wrong with a socket.
    static func take() throws -> ServiceManager {
        let environment = ProcessEnvironment.all
        for name in variables where environment[name] != nil { ProcessEnvironment.remove(name) }
        do throws(ConfigurationError) {
            return try ServiceManager(environment, process: getpid()) { descriptor, name throws(PassedSocket.Fault) in
                try PassedSocket(descriptor, name: name)
            }
        } catch {
            for problem in error.problems { Complaint.error("\(problem)") }
            throw ExitStatus.badConfiguration.error
        }
    }

    private init() {}

    /// - Parameter adopt: makes a descriptor of that name ours.
    init(
        _ environment: [String: String], process: Int32,
        adopt: (_ descriptor: Int32, _ name: String) throws(PassedSocket.Fault) -> PassedSocket
    ) throws(ConfigurationError) {
        notify = environment["NOTIFY_SOCKET"].flatMap { NotifySocket($0) }
        watchdog = Self.watchdog(environment, process: process)
        // Meant for another process: it has inherited our environment, or we its.
        guard let count = environment[Self.socketsVariable], environment["LISTEN_PID"] == "\(process)" else { return }
        // Int32 would take a sign.
        guard count.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int32(count),
            (0...1024).contains(count)
        else {
            throw Self.error("it is no number of sockets that systemd passes: \(count.prefix(20))")
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
                problems.append(
                    .init(
                        file: Self.socketsVariable,
                        message: "descriptor \(descriptor) (FileDescriptorName=\(name)) is of no use: \(error)"))
            }
        }
        guard problems.isEmpty else { throw ConfigurationError(problems: problems) }
    }

    private static func error(_ message: String) -> ConfigurationError {
        ConfigurationError(problems: [.init(file: socketsVariable, message: message)])
    }

    /// Twice in the time that it has. sd_watchdog_enabled(3).
    private static func watchdog(_ environment: [String: String], process: Int32) -> Duration? {
        if let other = environment["WATCHDOG_PID"], other != "\(process)" { return nil }
        guard let text = environment["WATCHDOG_USEC"], let microseconds = Int64(text), microseconds > 0 else {
            return nil
        }
        return .microseconds(microseconds) / 2
    }

    // MARK: What it hears

    /// It accepts, or has read its configuration again.
    func isReady(at addresses: [String], isGood: Bool = true) {
        let status = "Listening on " + addresses.joined(separator: ", ")
        let complaint = isGood ? "" : "; the configuration that was read last is wrong, the one before it is in use"
        notify?.send("READY=1\nSTATUS=\(status)\(complaint)")
    }

    func isReloading() {
        let now = NotifySocket.monotonicMicroseconds
        notify?.send("RELOADING=1\nMONOTONIC_USEC=\(now)\nSTATUS=Reading the configuration again")
    }

    func isStopping() { notify?.send("STOPPING=1\nSTATUS=Finishing what is under way") }

    /// Gives signs of life for as long as every loop has its turns.
    /// - Parameter pulse: returns once each had one.
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
