import Configuration

/// Asks a running proxy for its health, within the time of a probe. Blocks.
struct HealthProbe {
    /// Upper bound in seconds for one question to one target.
    let timeout: Int

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
                guard connection.receiveAll(limit: 64 * 1024, within: .seconds(timeout)) != nil else {
                    reasons.append("\(address): nobody serves the connection within \(timeout) s")
                    continue
                }
                return .good("the proxy serves \(address); without an admin section that is all that can be said")
            } catch { reasons.append("\(address): \(error.sentence)") }
        }
        return .bad(
            reasons.isEmpty
                ? "the kernel chose the listener's port, so it is not known here: write admin: {} into the configuration"
                : reasons.joined(separator: "; "))
    }
}
