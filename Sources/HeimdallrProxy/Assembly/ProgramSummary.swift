import Reports

/// The last line of `exec --serve`: what the proxy refused, and which programs refused its certificate.
struct ProgramSummary {
    let traffic: TrafficReport
    let requests: [RecentRequest]
    let untrusting: [UntrustingProgram]

    /// Most refused requests that are named.
    private static let most = 5

    /// `nil` if nothing was refused.
    var line: String? {
        let total = traffic.upstreams.reduce(0) { $0 + $1.requests.total }
        let refused = traffic.upstreams.reduce(0) { $0 + $1.answeredByProxy.total }
        guard refused > 0 || !untrusting.isEmpty else { return nil }
        var parts = ["\(total) request\(total == 1 ? "" : "s")"]
        if refused > 0 { parts.append("\(refused) refused" + (names.isEmpty ? "" : ": " + names)) }
        let hosts = untrusting.map { "\($0.program ?? $0.caller) for \($0.target)" }.prefix(Self.most)
        if !hosts.isEmpty {
            parts.append("the proxy's certificate was refused by " + hosts.joined(separator: ", "))
        }
        return parts.joined(separator: ", ")
    }

    /// The last refused requests, each with its reason once.
    private var names: String {
        var seen: Set<String> = []
        var names: [String] = []
        for request in requests.reversed() {
            guard let reason = request.reason, seen.insert("\(request.host) \(reason)").inserted else { continue }
            let host = request.host.isEmpty ? "a malformed request" : request.host
            names.append("\(host) (\(reason)\(request.remedy.map { ": \($0)" } ?? ""))")
        }
        let rest = names.count - Self.most
        return names.prefix(Self.most).joined(separator: "; ") + (rest > 0 ? "; and others" : "")
    }
}
