import Configuration
import Heimdallr

/// The upstreams of a configuration. Made beside the loops, because there may be thousands.
struct UpstreamPlan: Sendable {
    let rules: [UpstreamRule]
    /// All clients of the configuration.
    let named: [String: Heimdallr]
    let clients: [Heimdallr?]
    /// Index of each upstream in the former configuration; `nil` if its settings or its client are not the same.
    let former: [Int?]
    private let ofClients: [ObjectIdentifier: [Int]]

    /// - Parameter same: result of `matches` in `former`.
    init(
        _ configuration: Configuration, clients named: [String: Heimdallr], former: UpstreamPlan? = nil,
        same: [Int?] = []
    ) {
        let clients = configuration.upstreams.map { $0.client.flatMap { named[$0] } }
        self.named = named
        self.clients = clients
        rules = configuration.upstreams.enumerated().map { index, settings in
            if let former, same[index] == index { return former.rules[index] }
            return UpstreamRule(settings, index: index)
        }
        self.former = same.enumerated().map { index, place in
            place.flatMap { former?.clients[$0] === clients[index] ? $0 : nil }
        }
        var ofClients: [ObjectIdentifier: [Int]] = [:]
        for (index, client) in clients.enumerated() {
            if let client { ofClients[ObjectIdentifier(client), default: []].append(index) }
        }
        self.ofClients = ofClients
    }

    func places(of client: Heimdallr) -> [Int] { ofClients[ObjectIdentifier(client)] ?? [] }

    /// Returns, for each upstream, the place of one with the same settings among `former`.
    static func matches(of next: [UpstreamSettings], in former: [UpstreamSettings]) -> [Int?] {
        func name(_ settings: UpstreamSettings) -> String {
            ([settings.host.description] + settings.paths).joined(separator: " ")
        }
        var named: [String: [Int]] = [:]
        for (index, settings) in former.enumerated() { named[name(settings), default: []].append(index) }
        // Most upstreams follow the same upstream as before.
        var expected = 0
        return next.map { settings in
            let place =
                expected < former.count && former[expected] == settings
                ? expected : named[name(settings)]?.first { former[$0] == settings }
            if let place { expected = place + 1 }
            return place
        }
    }
}
