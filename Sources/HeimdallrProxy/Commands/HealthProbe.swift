import Administration
import Configuration

/// Asks a running proxy for its health, within the time of a probe. Blocks.
struct HealthProbe {
    /// Upper bound in seconds for one question to one target.
    let timeout: Int

    private static let maxAnswer = 64 * 1024

    /// The first one that answers decides.
    func ask(_ targets: [HealthTargets.Target], _ request: String) -> HealthOutcome {
        var reasons: [String] = []
        for target in targets {
            switch send(request, to: target) {
            case .answer(200, let text): return .good(text)
            case .answer(503, let text): return .bad(text)
            case .answer(let status, _): reasons.append("\(target) answers \(status): is it the proxy's admin port?")
            case .nothing(let reason): reasons.append("\(target): \(reason)")
            }
        }
        return .bad(reasons.isEmpty ? "there is nobody to ask: give --socket PATH" : reasons.joined(separator: "; "))
    }

    /// Checks whether the listeners are served: it makes a connection and ends its side, and a proxy whose loop turns ends the
    /// other side. That is no request, so it is neither logged nor counted.
    func knock(at addresses: [ListenAddress]) -> HealthOutcome {
        var reasons: [String] = []
        for address in addresses {
            do throws(SystemCallError) {
                let connection: SocketConnection
                switch address {
                case .tcp(_, port: 0): continue
                case .tcp(let host, let port):
                    connection = try SocketConnection(host: host, port: port, timeout: timeout)
                case .unix(let path, _): connection = try SocketConnection(path: path, timeout: timeout)
                }
                connection.endSending()
                guard connection.receiveAll(limit: Self.maxAnswer, within: .seconds(timeout)) != nil else {
                    reasons.append("\(address): nobody serves the connection within \(timeout) s")
                    continue
                }
                return .good("the proxy serves \(address); without an admin section that is all that can be said")
            } catch {
                reasons.append("\(address): \(error.sentence)")
            }
        }
        return .bad(
            reasons.isEmpty
                ? "the kernel chose the listener's port, so it is not known here: write admin: {} into the configuration"
                : reasons.joined(separator: "; "))
    }

    private enum Reply {
        case answer(Int, String)
        case nothing(String)
    }

    private func send(_ request: String, to target: HealthTargets.Target) -> Reply {
        switch target {
        case .socket(let path):
            do throws(AdminClient.Failure) {
                let answer = try AdminClient(path: path, timeout: timeout).send("GET", request)
                return .answer(answer.status, String(decoding: answer.body, as: UTF8.self))
            } catch {
                switch error {
                case .nobodyThere: return .nothing("nobody listens")
                case .stranger(let sentence), .other(let sentence): return .nothing(sentence)
                }
            }
        case .port(let host, let port):
            do throws(SystemCallError) {
                let connection = try SocketConnection(host: host, port: port, timeout: timeout)
                let head = "GET \(request) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
                guard connection.send(Array(head.utf8)),
                    let bytes = connection.receiveAll(limit: Self.maxAnswer, within: .seconds(timeout))
                else { return .nothing("no answer within \(timeout) s") }
                guard let answer = AdminClient.parse(bytes) else {
                    return .nothing("the answer is cut: is it the proxy's admin port?")
                }
                return .answer(answer.status, String(decoding: answer.body, as: UTF8.self))
            } catch {
                return .nothing(error.sentence)
            }
        }
    }
}

extension HealthTargets.Target: CustomStringConvertible {
    /// As `ListenAddress` writes it.
    var description: String {
        switch self {
        case .port(let host, let port): "\(ListenAddress.tcp(host: host, port: port))"
        case .socket(let path): "\(ListenAddress.unix(path: path, mode: nil))"
        }
    }
}

/// The addresses at which a running proxy reports its health.
enum HealthTargets: Equatable {
    enum Target: Equatable {
        case port(host: String, port: UInt16)
        case socket(String)
    }

    /// The port comes first: it answers any user of the machine, the socket only the user of the proxy.
    case administration([Target])
    /// Listeners for programs, where there is no administration.
    case listeners([ListenAddress])
    /// No address is known: the reason, and what to do.
    case unknown(String)

    init(_ source: ConfigurationSource, environment: [String: String]) {
        do throws(ConfigurationError) {
            guard let admin = try source.admin(environment) else {
                self = .listeners(try source.listeners(environment))
                return
            }
            self = .administration(Self.targets(admin, environment))
        } catch {
            let reason = error.problems.first.map { "\($0)" } ?? "the configuration can't be read"
            // It may have been good when the proxy began.
            guard case .file(let file) = source else {
                self = .unknown(reason)
                return
            }
            let guess = Self.guess(file: file, environment)
            self = guess.isEmpty ? .unknown(reason) : .administration(guess)
        }
    }

    private static func targets(_ admin: AdminSettings, _ environment: [String: String]) -> [Target] {
        var targets = AdminOptions.sockets(of: admin, environment: environment).map { Target.socket($0) }
        // Port 0 is chosen by the kernel at the start.
        if case .tcp(let host, let port) = admin.listen, port != 0 {
            targets.insert(.port(host: host, port: port), at: 0)
        }
        return targets
    }

    private static func guess(file: String, _ environment: [String: String]) -> [Target] {
        let port = AdminGuess.port(file: file).map { [Target.port(host: "127.0.0.1", port: $0)] } ?? []
        return port + AdminGuess.sockets(file: file, environment: environment).map { .socket($0) }
    }
}
