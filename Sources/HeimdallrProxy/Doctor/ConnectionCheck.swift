import CurlTransport
import Heimdallr
import Reactor
import WireText

/// Checks the connection to one server: its name, its addresses, TCP and TLS. Sends the server no request.
struct ConnectionCheck: Sendable {
    /// Maximum time for a name look-up, and for a connection with its handshake.
    static let limit = Duration.seconds(5)
    /// Maximum number of addresses that are tried for a name.
    private static let maxAddresses = 4

    let origin: Origin
    let options: PoolOptions
    let peer: TLSFault.Peer
    /// Addresses on which the proxy listens.
    let own: OwnListeners

    /// Checks step by step. Stops if a name has no address, or if no address accepts a connection.
    func findings() async -> [Finding] {
        let probe: ConnectionProbe
        do throws(TransportError) { probe = try ConnectionProbe(options, to: origin) } catch {
            return [.failed("next proxy", FailureCause.text(error), "check `proxy`")]
        }
        var findings: [Finding] = []
        var names: ConnectionProbe.Names = [:]
        for host in probe.hosts {
            let (found, finding) = await lookUp(host, check: host == probe.proxy ? "next proxy" : "name")
            findings.append(finding)
            guard !found.isEmpty else { return findings }
            findings.append(judge(found, host))
            names[host] = found
        }
        let dialled = probe.hosts[0]
        let addresses = Array((names[dialled] ?? []).prefix(Self.maxAddresses))
        func connect(_ addresses: [NumericAddress], reaching: Bool) async -> [ConnectionProbe.Facts] {
            await Checks.all(addresses) { [names] address in
                await Self.connect(probe, reaching: reaching, names.merging([dialled: [address]]) { $1 })
            }
        }
        let tries = Array(zip(addresses, await connect(addresses, reaching: false)))
        let reached = tries.filter { $0.1.connectedAfter != nil }.map(\.0)
        for (address, facts) in tries {
            findings.append(Self.tcp(facts, address.socketAddress(port: dialled.port), reachesOther: !reached.isEmpty))
        }
        guard !reached.isEmpty else { return findings }
        guard probe.proxy == nil else {
            names[dialled] = reached
            return findings + throughProxy(await Self.connect(probe, reaching: true, names))
        }
        guard origin.scheme == .https else { return findings }
        // The same finding at several addresses is shown once.
        for finding in await connect(reached, reaching: true).flatMap(tls)
        where !findings.contains(where: finding.isSame) { findings.append(finding) }
        return findings
    }

    static let schemeFault = Finding.failed(
        "HTTP", "the port speaks TLS, and the address says http://", "write https:// in the address")

    /// Whether the origin has the scheme http, but its port speaks TLS. `false` with a next proxy.
    func wantsTLS() async -> Bool {
        var secure = origin
        secure.scheme = .https
        guard origin.scheme == .http, let probe = try? ConnectionProbe(options, to: secure), probe.proxy == nil,
            let address = await lookUp(probe.hosts[0], check: "name").addresses.first
        else { return false }
        let facts = await Self.connect(probe, reaching: true, [probe.hosts[0]: [address]])
        return facts.failure == nil || !facts.certificates.isEmpty
    }

    private static func connect(
        _ probe: ConnectionProbe, reaching: Bool, _ names: ConnectionProbe.Names
    ) async -> ConnectionProbe.Facts {
        await BlockingWork.run { probe.run(reaching: reaching, names: names, within: limit) }
    }

    private func lookUp(
        _ host: DialledHost, check: String
    ) async -> (addresses: [NumericAddress], finding: Finding) {
        if let address = NumericAddress(host.name) { return ([address], .good(check, "\(host.name) is an address")) }
        let begin = ContinuousClock.now
        let answer = await Checks.value(within: Self.limit) {
            await BlockingWork.run {
                Result { () throws(ResolutionError) in try SocketAddress.resolve(host: host.name, port: host.port) }
            }
        }
        do throws(ResolutionError) {
            guard let found = try answer?.get() else {
                let text = "no answer from the name server about \(host.name) within \(Self.limit.components.seconds) s"
                return ([], .failed(check, text, "check this machine's name servers (/etc/resolv.conf)"))
            }
            let list = found.prefix(8).compactMap { NumericAddress($0)?.description }.joined(separator: ", ")
            let finding = Finding.good(check, "\(host.name) is at \(list)", after: begin.duration(to: .now))
            return (found.compactMap { NumericAddress($0) }, finding)
        } catch {
            let text = "unknown host: \(ForeignText.printable(error.description))"
            let advice = "check the name for typing errors, and this machine's name servers: getent hosts \(host.name)"
            return ([], .failed(check, text, advice))
        }
    }

    /// Refuses only addresses of the proxy's own listeners, because configured hosts may have any other address.
    private func judge(_ addresses: [NumericAddress], _ host: DialledHost) -> Finding {
        var policy = AddressPolicy()
        policy.own = own
        let bad = addresses.map { $0.socketAddress(port: host.port) }.filter { policy.judge($0) != .allowed }
        guard !bad.isEmpty else { return .good("address", "the proxy may connect to it") }
        let shown = bad.map(\.description).joined(separator: ", ")
        return .failed(
            "address", "\(shown) is one of this proxy's own listeners: requests would come back to it",
            "write the server's real address; if its name resolves to the proxy on this machine, write its IP address")
    }

    private static func tcp(_ facts: ConnectionProbe.Facts, _ address: SocketAddress, reachesOther: Bool) -> Finding {
        if let after = facts.connectedAfter { return .good("TCP", "\(address) accepts connections", after: after) }
        let text =
            switch facts.failure?.kind {
            case .connectionRefused: "\(address) refuses connections: nothing listens there"
            case .connectionTimedOut: "\(address) is silent: no connection within \(limit.components.seconds) s"
            default: "\(address): " + (facts.failure.map(FailureCause.text) ?? "no connection")
            }
        var advice = "check the address and the port, that the server runs, and what firewalls in between drop"
        if case .shortage(let shortage)? = facts.failure?.kind { advice = shortage.remedy }
        // If another address is reached, the proxy uses that address.
        return reachesOther ? .warning("TCP", text, advice) : .failed("TCP", text, advice)
    }

    private func tls(_ facts: ConnectionProbe.Facts) -> [Finding] {
        let hasCertificate = options.certificateFile != nil
        let host = origin.serverName ?? origin.host
        return CertificateCheck(facts: facts, host: host, hasClientCertificate: hasCertificate, peer: peer).findings
    }

    private func throughProxy(_ facts: ConnectionProbe.Facts) -> [Finding] {
        switch facts.failure?.kind {
        case nil: return origin.scheme == .https ? tls(facts) : []
        case .tlsCertificate, .tlsHandshake, .tlsConfiguration: return tls(facts)
        default:
            let cause = facts.failure.map(FailureCause.text) ?? ""
            let text = "the next proxy does not connect to \(origin.host):\(origin.port): \(cause)"
            return [.failed("next proxy", text, "check `proxy`, its user and password, and what it allows")]
        }
    }
}
