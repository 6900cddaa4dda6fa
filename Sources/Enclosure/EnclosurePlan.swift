public import Reactor

/// What an enclosure has in its network namespace: the proxy's sockets, and the rules that make their addresses local.
public struct EnclosurePlan: Sendable, Equatable {
    public enum Transport: String, Sendable { case tcp, udp }

    /// A socket that the launcher serves. With the address 0.0.0.0 or `::`, it answers at every address.
    public struct Listener: Sendable, Equatable {
        public let transport: Transport
        public let address: SocketAddress
    }

    /// Makes a port local: at every address, or at one alone.
    struct Rule: Equatable {
        let transport: Transport
        let port: UInt16
        /// `nil`: every address of both families.
        let address: SocketAddress?
    }

    public let listeners: [Listener]

    init(listeners: [Listener]) { self.listeners = listeners }

    /// - Parameters:
    ///   - ports: TCP ports that the proxy serves at every address. 53 is added.
    ///   - allowed: further addresses with a listener each, for `--allow`.
    public init(ports: Set<UInt16>, allowed: [SocketAddress] = []) {
        var listeners: [Listener] = []
        for port in ports.union([Self.names]).sorted() {
            listeners += Self.wildcards(port).map { Listener(transport: .tcp, address: $0) }
        }
        listeners += Self.wildcards(Self.names).map { Listener(transport: .udp, address: $0) }
        self.listeners = listeners + allowed.map { Listener(transport: .tcp, address: $0) }
    }

    /// Port of the name server.
    static let names: UInt16 = 53

    private static func wildcards(_ port: UInt16) -> [SocketAddress] {
        [SocketAddress(.ipv4(address: 0, port: port)), SocketAddress(.ipv6(high: 0, low: 0, scope: 0, port: port))]
    }

    /// Rules for these listeners. A port at every address needs one rule for both families, an address one for itself.
    var rules: [Rule] {
        var rules: [Rule] = []
        for listener in listeners {
            let isEverywhere = NumericAddress(listener.address)?.isUnspecified ?? true
            let rule = Rule(
                transport: listener.transport, port: listener.address.port,
                address: isEverywhere ? nil : listener.address)
            if !rules.contains(rule) { rules.append(rule) }
        }
        return rules
    }

    // MARK: As words, for the process inside

    var words: [String] { listeners.flatMap { [$0.transport.rawValue, $0.address.host, "\($0.address.port)"] } }

    /// Reads `words`; `nil` for others.
    init?(_ words: [String]) {
        guard words.count.isMultiple(of: 3) else { return nil }
        var read: [Listener] = []
        for start in stride(from: 0, to: words.count, by: 3) {
            guard let transport = Transport(rawValue: words[start]), let port = UInt16(words[start + 2]),
                let address = SocketAddress(numericHost: words[start + 1], port: port)
            else { return nil }
            read.append(Listener(transport: transport, address: address))
        }
        self.init(listeners: read)
    }
}
