import Foundation

/// A real Prometheus with the scrape configuration and the alerts of `deploy/observe`. Only the targets, the intervals
/// and the data folder differ.
public final class Prometheus: Sendable {
    /// One series of a query's answer.
    public struct Series: Sendable {
        public var labels: [String: String]
        /// The value; of a range, the last value.
        public var value: Double
    }

    public struct Alert: Sendable {
        public var name: String
        public var expression: String
    }

    public let port: UInt16
    private let child: ChildProcess
    private let directory: TemporaryDirectory

    /// - Parameter targets: admin ports.
    /// - Throws: `TestFailure` with the output when the start fails.
    public init(scraping targets: [UInt16]) async throws {
        let folder = "\(Repository.root)/deploy/observe"
        let example = try String(contentsOfFile: "\(folder)/prometheus.yaml", encoding: .utf8)
        let ports = targets.map { "127.0.0.1:\($0)" }.joined(separator: ", ")
        let text = example.replacing("127.0.0.1:8081", with: ports).replacing(": 15s", with: ": 250ms")
            .replacing("- alerts.yaml", with: "- \(folder)/alerts.yaml")
        guard text.contains(ports), text.contains("scrape_interval: 250ms"), text.contains("\(folder)/alerts.yaml")
        else { throw TestFailure("deploy/observe/prometheus.yaml is not what the tests know: \(example)") }
        // A port that was free a moment ago may be taken by the time Prometheus binds it.
        var lastFailure: any Error = TestFailure("Prometheus was not tried")
        for _ in 0..<5 {
            let directory = try TemporaryDirectory()
            let port = try freePort()
            let child = try ChildProcess([
                "prometheus", "--config.file=\(try directory.write(text, to: "prometheus.yaml"))",
                "--storage.tsdb.path=\(directory.path)/data", "--web.listen-address=127.0.0.1:\(port)",
                "--log.level=warn", "--query.lookback-delta=2s",
            ])
            do {
                try await eventually("Prometheus answers", within: .seconds(30)) {
                    if child.ending != nil { throw TestFailure(child.transcript) }
                    return (try? await Self.get("/-/ready", port: port).status) == 200
                }
                (self.port, self.child, self.directory) = (port, child, directory)
                return
            } catch { lastFailure = error }
        }
        throw lastFailure
    }

    deinit { child.kill() }

    /// Prometheus's warnings and errors so far.
    public var log: String { child.errors }

    /// Returns the loaded alerts.
    public func alerts() async throws -> [Alert] {
        let data = try await ask("/api/v1/rules?type=alert")
        guard let groups = data["groups"] as? [[String: Any]] else { throw TestFailure("no groups: \(data)") }
        return groups.flatMap { $0["rules"] as? [[String: Any]] ?? [] }.compactMap { rule in
            guard let name = rule["name"] as? String, let query = rule["query"] as? String else { return nil }
            return Alert(name: name, expression: query)
        }
    }

    /// Evaluates an expression for the present time.
    /// - Throws: `TestFailure` with Prometheus's message when the query fails.
    public func query(_ expression: String) async throws -> [Series] {
        var allowed = CharacterSet.alphanumerics
        allowed.insert(charactersIn: "-._~")
        let encoded = expression.addingPercentEncoding(withAllowedCharacters: allowed) ?? ""
        let data = try await ask("/api/v1/query?query=\(encoded)")
        if data["resultType"] as? String == "scalar" {
            return [Series(labels: [:], value: Self.number(data["result"]))]
        }
        guard let result = data["result"] as? [[String: Any]] else { throw TestFailure("no result: \(data)") }
        return result.map { Series(labels: $0["metric"] as? [String: String] ?? [:], value: Self.number($0["value"])) }
    }

    /// `[time, "value"]`
    private static func number(_ pair: Any?) -> Double {
        (pair as? [Any])?.last.flatMap { $0 as? String }.flatMap { Double($0) } ?? .nan
    }

    private func ask(_ target: String) async throws -> [String: Any] {
        let answer = try await Self.get(target, port: port)
        let json = try? JSONSerialization.jsonObject(with: Data(answer.text.utf8)) as? [String: Any]
        guard let json, json["status"] as? String == "success", let data = json["data"] as? [String: Any] else {
            throw TestFailure("\(answer.status): \(answer.text)")
        }
        return data
    }

    private static func get(_ target: String, port: UInt16) async throws -> RawResponse {
        try await RawClient.exchange(
            port: port, "GET \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", method: "GET")
    }
}
