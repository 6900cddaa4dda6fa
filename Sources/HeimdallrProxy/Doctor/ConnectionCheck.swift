import CurlTransport
import Heimdallr
import Reactor
import WireText

/// One server: its name, its addresses, TCP and TLS. Sends nothing but a handshake.
struct ConnectionCheck: Sendable {
    /// Upper bound for one name look-up, and for one connection with its handshake.
    static let limit = Duration.seconds(5)
    /// Number of addresses of a name that are tried.
    private static let maxAddresses = 4

    let origin: Origin
    let options: PoolOptions
    let peer: TLSFault.Peer
    /// The addresses that the proxy listens at.
    let own: OwnListeners

    /// Returns the findings, and whether a connection could be made.
    func run() async -> (findings: [Finding], isReachable: Bool) {
        let probe: ConnectionProbe
        do throws(TransportError) { probe = try ConnectionProbe(options, to: origin) } catch {
            return ([.failed("next proxy", FailureCause.text(error), "check `proxy`")], false)
        }
        var findings: [Finding] = []
        var names: ConnectionProbe.Names = [:]
        for host in probe.hosts {
            let (found, finding) = await lookUp(host, isProxy: host == probe.proxy)
            findings.append(finding)
            guard let found else { return (findings, false) }
            findings.append(judge(found, host))
            names[host] = found
        }
        let dialled = probe.hosts[0]
        let addresses = Array((names[dialled] ?? []).prefix(Self.maxAddresses))
        typealias Try = (tcp: ConnectionProbe.Facts, tls: ConnectionProbe.Facts?)
        let tries = await Checks.all(addresses) { [names] address -> Try in
            let names = names.merging([dialled: [address]]) { $1 }
            let tcp = await Self.connect(probe, reaching: false, names)
            guard tcp.connectedAfter != nil, probe.proxy == nil, origin.scheme == .https else { return (tcp, nil) }
            return (tcp, await Self.connect(probe, reaching: true, names))
        }
        let isUp = tries.contains { $0.tcp.connectedAfter != nil }
        for (address, facts) in zip(addresses, tries) {
            findings.append(Self.tcp(facts.tcp, address.socketAddress(port: dialled.port), hasOther: isUp))
        }
        guard isUp else { return (findings, false) }
        guard probe.proxy == nil else {
            let facts = await Self.connect(probe, reaching: true, names)
            return (findings + throughProxy(facts), facts.failure == nil)
        }
        // The same finding at several addresses is told once.
        for finding in tries.compactMap(\.tls).flatMap(tls)
        where !findings.contains(where: {
            $0.check == finding.check
                && (finding.outcome == .good || $0.outcome == finding.outcome && $0.text == finding.text)
        }) {
            findings.append(finding)
        }
        return (findings, origin.scheme == .http || tries.compactMap(\.tls).contains { $0.failure == nil })
    }

    static let wantsTLS = Finding.failed(
        "HTTP", "the port speaks TLS, and the address says http://", "write https:// in the address")

    /// Whether a port with an http:// address speaks TLS.
    func wantsTLS() async -> Bool {
        var secure = origin
        secure.scheme = .https
        guard origin.scheme == .http, let probe = try? ConnectionProbe(options, to: secure), probe.proxy == nil,
            let address = await lookUp(probe.hosts[0], isProxy: false).addresses?.first
        else { return false }
        let facts = await Self.connect(probe, reaching: true, [probe.hosts[0]: [address]])
        return facts.failure == nil || !facts.certificates.isEmpty
    }

    private static func connect(
        _ probe: ConnectionProbe, reaching: Bool, _ names: ConnectionProbe.Names
    ) async -> ConnectionProbe.Facts {
        await BlockingWork.run { probe.run(reaching: reaching, names: names, within: limit) }
    }

    // MARK: The name

    private func lookUp(
        _ host: ConnectionProbe.Host, isProxy: Bool
    ) async -> (addresses: [NumericAddress]?, finding: Finding) {
        let check = isProxy ? "next proxy" : "name"
        let setting = isProxy ? "`proxy`" : "the host name"
        if let address = NumericAddress(host.name) { return ([address], .good(check, "\(host.name) is an address")) }
        let begin = ContinuousClock.now
        let answer = await Checks.value(within: Self.limit) {
            await BlockingWork.run {
                Result { () throws(ResolutionError) in try SocketAddress.resolve(host: host.name, port: host.port) }
            }
        }
        switch answer {
        case nil:
            let text = "no answer from the name server about \(host.name) within \(Self.limit.components.seconds) s"
            return (nil, .failed(check, text, "check this machine's name servers (/etc/resolv.conf)"))
        case .failure(let error)?:
            let text = "unknown host: \(ForeignText.printable(error.description))"
            let advice =
                "check \(setting) for typing errors, and this machine's name servers: getent hosts \(host.name)"
            return (nil, .failed(check, text, advice))
        case .success(let found)?:
            let addresses = found.compactMap { NumericAddress($0) }
            guard !addresses.isEmpty else {
                return (nil, .failed(check, "\(host.name) has no address", "check \(setting)"))
            }
            let list = addresses.prefix(8).map(\.description).joined(separator: ", ")
            return (addresses, .good(check, "\(host.name) is at \(list)", after: begin.duration(to: .now)))
        }
    }

    /// Judges addresses by rule 9. Of its parts only one holds for the hosts of the configuration.
    private func judge(_ addresses: [NumericAddress], _ host: ConnectionProbe.Host) -> Finding {
        var policy = AddressPolicy()
        policy.own = own
        let bad = addresses.map { $0.socketAddress(port: host.port) }.filter { policy.judge($0) != .allowed }
        guard !bad.isEmpty else { return .good("address", "the proxy may go there") }
        return .failed(
            "address",
            "\(bad.map(\.description).joined(separator: ", ")) is one of this proxy's own listeners: requests would come "
                + "back to it",
            "write the server's real address; where names are redirected to the proxy, one from outside")
    }

    // MARK: TCP and TLS

    private static func tcp(_ facts: ConnectionProbe.Facts, _ address: SocketAddress, hasOther: Bool) -> Finding {
        if let after = facts.connectedAfter { return .good("TCP", "\(address) takes connections", after: after) }
        let (text, advice) =
            switch facts.failure?.kind {
            case .connectionRefused:
                (" refuses connections: nothing listens there", "check that the server runs, and the port")
            case .connectionTimedOut:
                (
                    " is silent: no connection within \(limit.components.seconds) s",
                    "check the address and the port, and what firewalls in between drop"
                )
            default:
                (
                    ": " + (facts.failure.map(FailureCause.text) ?? "no connection"),
                    "check the network between here and there"
                )
            }
        // The proxy connects to another address of the name.
        return hasOther ? .warning("TCP", "\(address)\(text)", advice) : .failed("TCP", "\(address)\(text)", advice)
    }

    private func tls(_ facts: ConnectionProbe.Facts) -> [Finding] {
        CertificateCheck(
            facts: facts, host: origin.serverName ?? origin.host, hasCertificate: options.certificateFile != nil,
            peer: peer
        ).findings
    }

    private func throughProxy(_ facts: ConnectionProbe.Facts) -> [Finding] {
        switch facts.failure?.kind {
        case nil: return origin.scheme == .https ? tls(facts) : []
        case .tlsCertificate, .tlsHandshake, .tlsConfiguration: return tls(facts)
        default:
            let cause = facts.failure.map(FailureCause.text) ?? ""
            return [
                .failed(
                    "next proxy", "it does not lead to \(origin.host):\(origin.port): \(cause)",
                    "check `proxy`, its user and password, and what it allows")
            ]
        }
    }
}
