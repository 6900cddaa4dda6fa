import Foundation
import TestSupport

/// What must never be seen.
let accessToken = "access-token-SEKRET-0123456789"
let refreshToken = "refresh-token-SEKRET-0123456789"
let clientSecret = "client-secret-SEKRET-0123456789"
let adminToken = "admin-token-SEKRET-0123456789"

/// A running proxy with an admin port, one client `api` and one upstream `api.test`.
final class AdministeredProxy: Sendable {
    let proxy: RunningProxy
    let tokenEndpoint: TokenEndpoint
    let origin: RecordingOrigin
    let adminPort: UInt16
    let socket: String

    /// - Parameters:
    ///   - admin: further lines of the `admin` section, `client`: of the client.
    ///   - socket: `nil`: one in the test's own folder.
    init(
        _ tokenEndpoint: TokenEndpoint, admin: String = "", client: String = "", upstream: String = "",
        socket: String? = nil, more: String = "", environment: [String: String?] = [:]
    ) async throws {
        self.tokenEndpoint = tokenEndpoint
        let origin = try RecordingOrigin()
        self.origin = origin
        let proxy = try await RunningProxy(
            Self.configuration(
                tokenEndpoint: tokenEndpoint.url, origin: origin.url, admin: admin, client: client, upstream: upstream,
                socket: socket ?? "FOLDER/admin.sock", more: more),
            files: ["secret": clientSecret, "admin-token": adminToken], environment: environment)
        self.proxy = proxy
        let line = try await eventually("the administration listens") {
            proxy.log.split(separator: "\n").first { $0.contains(" info administration ") }
        }
        adminPort = UInt16(Self.word("address", line).split(separator: ":").last ?? "") ?? 0
        self.socket = Self.word("socket", line)
    }

    /// With a client that gets `accessToken`.
    convenience init(admin: String = "", client: String = "", environment: [String: String?] = [:]) async throws {
        try await self.init(
            TokenEndpoint([.token(accessToken)]), admin: admin, client: client, environment: environment)
    }

    static func configuration(
        tokenEndpoint: String, origin: String, admin: String = "", client: String = "", upstream: String = "",
        socket: String, more: String = ""
    ) -> String {
        """
        proxy: {listen: "127.0.0.1:0"}
        admin:
          listen: 127.0.0.1:0
          socket: \(socket)
        \(indented(admin, 2))
        clients:
          api:
            token_endpoint: \(tokenEndpoint)
            client_id: admin-tests
            client_secret: {file: FOLDER/secret}
            allow_plaintext: true
        \(indented(client, 4))
        upstreams:
          - host: api.test
            url: \(origin)
            client: api
            allow_plaintext: true
        \(indented(upstream, 4))
        \(more)
        """
    }

    private static func indented(_ lines: String, _ count: Int) -> String {
        lines.split(separator: "\n").map { String(repeating: " ", count: count) + $0 }.joined(separator: "\n")
    }

    private static func word(_ name: String, _ line: Substring) -> String {
        let word = line.split(separator: " ").first { $0.hasPrefix("\(name)=") } ?? ""
        return String(word.dropFirst(name.count + 1))
    }

    // MARK: Asking it

    func get(_ path: String, _ fields: [(String, String)] = [], host: String? = "localhost") async throws -> RawResponse
    {
        try await send("GET", path, fields, host: host)
    }

    func send(
        _ method: String, _ target: String, _ fields: [(String, String)] = [], host: String? = "localhost"
    ) async throws -> RawResponse {
        var head = "\(method) \(target) HTTP/1.1\r\n"
        if let host { head += "Host: \(host)\r\n" }
        for (name, value) in fields { head += "\(name): \(value)\r\n" }
        return try await RawClient.exchange(port: adminPort, head + "Connection: close\r\n\r\n", method: method)
    }

    /// Runs a verb against it.
    func run(_ arguments: String...) async throws -> ChildProcess {
        try await RunningProxy.run(arguments + ["--socket", socket])
    }

    /// Waits until its client has a token.
    func ready() async throws {
        let deadline = ContinuousClock.now + .seconds(20)
        while try await !get("/status").text.contains(#""state": "ready""#) {
            guard ContinuousClock.now < deadline else { throw TestFailure("no token: \(proxy.log)") }
            try await Task.sleep(for: .milliseconds(20))
        }
    }
}

/// One sample of the Prometheus text format.
struct Sample: Hashable {
    var name: String
    var labels: [String: String]
}

/// Reads the Prometheus text format 0.0.4, strictly: each family has its help and type before its samples, and no sample
/// comes twice.
struct PrometheusReader {
    var samples: [Sample: Double] = [:]
    var types: [String: String] = [:]
    var problems: [String] = []

    init(_ text: String) {
        var helped: Set<String> = []
        var family = ""
        if !text.hasSuffix("\n") { problems.append("the last line has no end") }
        for line in text.split(separator: "\n", omittingEmptySubsequences: false).dropLast() {
            if let match = line.wholeMatch(of: /# HELP ([a-z_]+) (.+)/) {
                if !helped.insert(String(match.1)).inserted { problems.append("helped twice: \(line)") }
                family = String(match.1)
            } else if let match = line.wholeMatch(of: /# TYPE ([a-z_]+) (counter|gauge|histogram)/) {
                if match.1 != family { problems.append("a type without its help: \(line)") }
                types[family] = String(match.2)
            } else if let match = line.wholeMatch(of: /([a-z_]+)(?:\{(.*)\})? (-?[0-9.e+-]+|NaN|[+-]Inf)/) {
                let name = String(match.1)
                let base = types[family] == "histogram" ? name.replacing(/_(bucket|sum|count)$/, with: "") : name
                if base != family { problems.append("outside its family: \(line)") }
                guard let value = Double(match.3), let labels = Self.labels(match.2 ?? "") else {
                    problems.append("unreadable: \(line)")
                    continue
                }
                if samples.updateValue(value, forKey: Sample(name: name, labels: labels)) != nil {
                    problems.append("twice: \(line)")
                }
            } else {
                problems.append("unreadable: \(line)")
            }
        }
    }

    private static func labels(_ text: Substring) -> [String: String]? {
        var labels: [String: String] = [:]
        var rest = text
        while !rest.isEmpty {
            guard let match = rest.prefixMatch(of: /([a-z_]+)="((?:[^"\\]|\\\\|\\"|\\n)*)"(?:,|$)/) else { return nil }
            guard labels.updateValue(String(match.2), forKey: String(match.1)) == nil else { return nil }
            rest = rest[match.range.upperBound...]
        }
        return labels
    }

    func value(_ name: String, _ labels: [String: String] = [:]) -> Double? {
        samples[Sample(name: name, labels: labels)]
    }
}

/// Waits until the readiness probe says yes.
func eventuallyReady(_ admin: AdministeredProxy) async throws {
    let deadline = ContinuousClock.now + .seconds(20)
    while try await admin.get("/readyz").status != 200 {
        guard ContinuousClock.now < deadline else { throw TestFailure("not ready: \(admin.proxy.log)") }
        try await Task.sleep(for: .milliseconds(20))
    }
}

/// The names of a process's threads.
func threads(of pid: Int32) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: "/proc/\(pid)/task").compactMap {
        try? String(contentsOfFile: "/proc/\(pid)/task/\($0)/comm", encoding: .utf8)
    }
}
