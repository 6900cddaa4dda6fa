import Administration
import Configuration

/// Asks a running proxy for its health, within the time of a probe. Blocks.
struct HealthProbe {
    /// Upper bound in seconds for one question to one target.
    let timeout: Int

    private static let maxAnswer = 64 * 1024

    /// The first one that answers decides.
    func ask(_ targets: [ListenAddress], _ request: String) -> HealthOutcome {
        var reasons: [String] = []
        for target in targets {
            do throws(AdminClient.Failure) {
                let answer = try AdminClient(address: target, timeout: timeout).send("GET", request)
                let text = String(decoding: answer.body, as: UTF8.self)
                switch answer.status {
                case 200: return .good(text)
                case 503: return .bad(text)
                default: reasons.append("\(target) answers \(answer.status): is it the proxy's admin port?")
                }
            } catch {
                switch error {
                case .nobodyThere(let cause): reasons.append("\(target): nobody listens (\(cause))")
                case .stranger(let sentence), .other(let sentence): reasons.append("\(target): \(sentence)")
                }
            }
        }
        return .bad(reasons.isEmpty ? "there is nobody to ask: give --socket PATH" : reasons.joined(separator: "; "))
    }

    /// Checks whether the listeners are served: it makes a connection and ends its side, and a proxy whose loop turns ends the
    /// other side. That is no request, so it is neither logged nor counted.
    func knock(at addresses: [ListenAddress]) -> HealthOutcome {
        var reasons: [String] = []
        for address in addresses {
            if case .tcp(_, port: 0) = address { continue }
            do throws(SystemCallError) {
                let connection = try SocketConnection(to: address, timeout: timeout)
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
}

/// The addresses at which a running proxy reports its health.
enum HealthTargets: Equatable {
    /// The port comes first: it answers any user of the machine, the socket only the user of the proxy.
    case administration([ListenAddress])
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

    private static func targets(_ admin: AdminSettings, _ environment: [String: String]) -> [ListenAddress] {
        let sockets = AdminOptions.sockets(of: admin, environment: environment)
        // Port 0 is chosen by the kernel at the start.
        let ports = if case .tcp(_, port: 0) = admin.listen { [ListenAddress]() } else { [admin.listen] }
        return ports + sockets.map { .unix(path: $0, mode: nil) }
    }

    private static func guess(file: String, _ environment: [String: String]) -> [ListenAddress] {
        let ports = [AdminGuess.port(file: file)].compactMap(\.self).map {
            ListenAddress.tcp(host: "127.0.0.1", port: $0)
        }
        return ports + AdminGuess.sockets(file: file, environment: environment).map { .unix(path: $0, mode: nil) }
    }
}
