import CurlTransport
import Heimdallr
import Reactor
import WireText

/// One server that the proxy talks to: its name, its addresses, TCP and TLS. Nothing is sent to it but a handshake.
struct PlaceCheck: Sendable {
    /// How long one name, and one connection with its handshake, may take.
    static let limit = Duration.seconds(5)
    /// More addresses than that are not tried.
    private static let mostAddresses = 4

    let origin: Origin
    let options: PoolOptions
    let peer: TLSFault.Peer
    /// Where the proxy itself would listen.
    let own: OwnListeners

    /// What was found, and whether a connection stands in the end.
    func run() async -> (findings: [Finding], isReachable: Bool) {
        let probe: ConnectionProbe
        do throws(TransportError) {
            probe = try ConnectionProbe(options, to: origin)
        } catch {
            return ([.failed("next proxy", FailureCause.text(error), "check `proxy`")], false)
        }
        var findings: [Finding] = []
        var names: [ConnectionProbe.Party: [NumericAddress]] = [:]
        let target = ConnectionProbe.Party(host: origin.host, port: origin.port)
        for party in probe.proxy.map({ probe.looksUpOrigin ? [$0, target] : [$0] }) ?? [target] {
            let (found, finding) = await lookUp(party, isProxy: party != target)
            findings.append(finding)
            guard let found else { return (findings, false) }
            if let finding = judge(found, party) { findings.append(finding) }
            names[party] = found
        }
        let addresses = Array((names[probe.first] ?? []).prefix(Self.mostAddresses))
        let tries = await Self.connect(probe, reaching: false, names, to: addresses)
        let isAnyUp = tries.values.contains { $0.connectedAfter != nil }
        for (index, address) in addresses.enumerated() {
            guard let facts = tries[index] else { continue }
            findings.append(Self.tcp(facts, address.socketAddress(port: probe.first.port), hasOther: isAnyUp))
        }
        guard isAnyUp else { return (findings, false) }
        guard probe.proxy == nil else {
            let facts = await Self.connect(probe, reaching: true, names)
            findings += throughProxy(facts)
            return (findings, facts.failure == nil)
        }
        guard origin.scheme == .https else { return (findings, true) }
        var told: [String] = []
        var isReachable = false
        let open = addresses.indices.filter { tries[$0]?.connectedAfter != nil }.map { addresses[$0] }
        let handshakes = await Self.connect(probe, reaching: true, names, to: open)
        for index in handshakes.keys.sorted() {
            guard let facts = handshakes[index] else { continue }
            if facts.failure == nil { isReachable = true }
            // The same at each address is said once.
            for finding in tls(facts) where !told.contains(finding.outcome.rawValue + finding.text) {
                told.append(finding.outcome.rawValue + finding.text)
                if finding.outcome != .good || !findings.contains(where: { $0.check == finding.check }) {
                    findings.append(finding)
                }
            }
        }
        return (findings, isReachable)
    }

    static let wantsTLS = Finding.failed(
        "HTTP", "the port speaks TLS, and the address says http://", "write https:// in the address")

    /// Whether a port that is spoken to in plain text wants TLS.
    func wantsTLS() async -> Bool {
        var secure = origin
        secure.scheme = .https
        guard origin.scheme == .http, let probe = try? ConnectionProbe(options, to: secure), probe.proxy == nil else {
            return false
        }
        let (found, _) = await lookUp(probe.first, isProxy: false)
        guard let address = found?.first else { return false }
        let facts = await Self.connect(probe, reaching: true, [probe.first: [address]])
        return facts.failure == nil || !facts.certificates.isEmpty
    }

    /// To each address at the same time, by its place in the list.
    private static func connect(
        _ probe: ConnectionProbe, reaching: Bool, _ names: [ConnectionProbe.Party: [NumericAddress]],
        to addresses: [NumericAddress]
    ) async -> [Int: ConnectionProbe.Facts] {
        await withTaskGroup(of: (Int, ConnectionProbe.Facts).self) { group in
            for (index, address) in addresses.enumerated() {
                var names = names
                names[probe.first] = [address]
                group.addTask { [names] in (index, await connect(probe, reaching: reaching, names)) }
            }
            return await group.reduce(into: [Int: ConnectionProbe.Facts]()) { $0[$1.0] = $1.1 }
        }
    }

    private static func connect(
        _ probe: ConnectionProbe, reaching: Bool, _ names: [ConnectionProbe.Party: [NumericAddress]]
    ) async -> ConnectionProbe.Facts {
        await BlockingWork.run { probe.run(reaching: reaching, names: names, within: limit) }
    }

    // MARK: The name

    private func lookUp(
        _ party: ConnectionProbe.Party, isProxy: Bool
    ) async -> (addresses: [NumericAddress]?, finding: Finding) {
        let what = isProxy ? "next proxy" : "name"
        if let address = NumericAddress(party.host) { return ([address], .good(what, "\(party.host) is an address")) }
        let begin = ContinuousClock.now
        let answer = await Bounded.run(within: Self.limit) { () -> Result<[SocketAddress], ResolutionError> in
            do throws(ResolutionError) {
                return .success(try SocketAddress.resolve(host: party.host, port: party.port))
            } catch {
                return .failure(error)
            }
        }
        let taken = begin.duration(to: .now)
        let where_ = isProxy ? "`proxy`" : "the host name"
        switch answer {
        case nil:
            return (
                nil,
                .failed(
                    what,
                    "no answer from the name server about \(party.host) within \(Self.limit.components.seconds) s",
                    "check this machine's name servers (/etc/resolv.conf)")
            )
        case .failure(let error)?:
            return (
                nil,
                .failed(
                    what, "unknown host: \(ForeignText.printable(error.description))",
                    "check \(where_) for typing errors, and this machine's name servers: getent hosts \(party.host)")
            )
        case .success(let found)?:
            let addresses = found.compactMap { NumericAddress($0) }
            guard !addresses.isEmpty else {
                return (nil, .failed(what, "\(party.host) has no address", "check \(where_)"))
            }
            let list = addresses.prefix(8).map(\.description).joined(separator: ", ")
            return (addresses, .good(what, "\(party.host) is at \(list)", after: taken))
        }
    }

    /// What the proxy would not dial (rule 9); the hosts of the configuration are free of all but one of its rules.
    private func judge(_ addresses: [NumericAddress], _ party: ConnectionProbe.Party) -> Finding? {
        var policy = AddressPolicy()
        policy.own = own
        let bad = addresses.filter { policy.judge($0.socketAddress(port: party.port)) != .allowed }
        guard !bad.isEmpty else {
            return .good("address", "the proxy may go there")
        }
        let list = bad.map { $0.socketAddress(port: party.port).description }.joined(separator: ", ")
        return .failed(
            "address", "\(list) is one of this proxy's own listeners: requests would come back to it",
            "write the server's real address; where names are redirected to the proxy, one from outside")
    }

    // MARK: TCP

    private static func tcp(_ facts: ConnectionProbe.Facts, _ address: SocketAddress, hasOther: Bool) -> Finding {
        if let after = facts.connectedAfter { return .good("TCP", "\(address) takes connections", after: after) }
        var finding: Finding
        switch facts.failure?.kind {
        case .connectionRefused:
            finding = .failed(
                "TCP", "\(address) refuses connections: nothing listens there",
                "check that the server runs, and the port")
        case .connectionTimedOut:
            finding = .failed(
                "TCP", "\(address) is silent: no connection within \(limit.components.seconds) s",
                "check the address and the port, and what firewalls in between drop")
        default:
            finding = .failed(
                "TCP", "\(address): " + (facts.failure.map { FailureCause.text($0) } ?? "no connection"),
                "check the network between here and there")
        }
        // The proxy takes the one that answers.
        if hasOther { finding.outcome = .warning }
        return finding
    }

    // MARK: TLS

    private func tls(_ facts: ConnectionProbe.Facts) -> [Finding] {
        CertificateCheck(
            facts: facts, host: origin.serverName ?? origin.host, hasCertificate: options.certificateFile != nil,
            peer: peer
        ).findings
    }

    private func throughProxy(_ facts: ConnectionProbe.Facts) -> [Finding] {
        guard let failure = facts.failure else {
            return origin.scheme == .https ? tls(facts) : []
        }
        switch failure.kind {
        case .tlsCertificate, .tlsHandshake, .tlsConfiguration: return tls(facts)
        default:
            return [
                .failed(
                    "next proxy", "it does not lead to \(origin.host):\(origin.port): \(FailureCause.text(failure))",
                    "check `proxy`, its user and password, and what it allows")
            ]
        }
    }
}
