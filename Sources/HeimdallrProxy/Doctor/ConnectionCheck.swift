import Administration
import Cryptography
import CurlTransport
import HTTPMessage
import Heimdallr
import HeimdallrCurl
import Proxy
import Reactor
import WireText

/// Checks the connection to one server as the proxy makes it: its name, its addresses, TCP and TLS. Sends the server no
/// request.
struct ConnectionCheck: Sendable {
    /// Maximum time for the look-ups of names, and for a connection with its handshake.
    static let limit = Duration.seconds(5)
    /// Maximum number of addresses that are tried for a name.
    private static let maxAddresses = 4
    /// A certificate that expires within this number of seconds causes a warning.
    private static let warningTime: Int64 = 14 * 86_400

    let origin: Origin
    let options: PoolOptions
    /// Advice for the client whose server this is; `nil` for an upstream.
    let advice: Advice?
    let loop: EventLoop

    static let schemeFault = Finding.failed(
        "HTTP", "the port speaks TLS, and the address says http://", "write https:// in the address")

    /// Checks step by step. Stops if a name has no usable address, or if no address accepts a connection.
    func findings() async -> [Finding] {
        let (probe, names): (ConnectionProbe, ConnectionProbe.Names)
        do throws(TransportError) {
            probe = try ConnectionProbe(options, to: origin)
            names = try await probe.names(within: Self.limit, on: loop)
        } catch { return [fault(error)] }
        var findings = probe.hosts.map { host in
            let list = (names[host] ?? []).prefix(8).map(\.description).joined(separator: ", ")
            let place = NumericAddress(host.name) == nil ? "at \(list)" : "an address"
            return Finding.good(host == probe.proxy ? "next proxy" : "name", "\(host.name) is \(place)")
        }
        findings.append(.good("address", "the proxy may connect to it"))
        let dialled = probe.hosts[0]
        let addresses = Array((names[dialled] ?? []).prefix(Self.maxAddresses))
        func connect(_ addresses: [NumericAddress], reaching: Bool) async -> [ConnectionProbe.Facts] {
            await Checks.all(addresses) { [names] address in
                await Self.connect(probe, reaching: reaching, names.merging([dialled: [address]]) { $1 })
            }
        }
        let tries = Array(zip(addresses, await connect(addresses, reaching: false)))
        let reached = tries.filter { $0.1.failure == nil }.map(\.0)
        for (address, facts) in tries {
            let place = "\(address.socketAddress(port: dialled.port))"
            guard let error = facts.failure else {
                findings.append(.good("TCP", "\(place) accepts connections", after: facts.connectedAfter))
                continue
            }
            // If another address is reached, the proxy uses that address. `localhost` stands for both of this machine's.
            guard reached.isEmpty || !dialled.name.hasSuffix("localhost") else { continue }
            var finding = fault(error, "\(place): ")
            if !reached.isEmpty { finding.outcome = .warning }
            findings.append(finding)
        }
        guard !reached.isEmpty, probe.proxy != nil || origin.scheme == .https else { return findings }
        // The same finding at several addresses is shown once.
        for finding in await connect(reached, reaching: true).flatMap({ handshake($0, probe.proxy != nil) })
        where !findings.contains(where: finding.isSame) { findings.append(finding) }
        return findings
    }

    /// Whether the origin has the scheme http, but its port speaks TLS. `false` with a next proxy.
    func wantsTLS() async -> Bool {
        var secure = origin
        secure.scheme = .https
        guard origin.scheme == .http, let probe = try? ConnectionProbe(options, to: secure), probe.proxy == nil,
            let names = try? await probe.names(within: Self.limit, on: loop)
        else { return false }
        let facts = await Self.connect(probe, reaching: true, names)
        return facts.failure == nil || !facts.certificates.isEmpty
    }

    private static func connect(
        _ probe: ConnectionProbe, reaching: Bool, _ names: ConnectionProbe.Names
    ) async -> ConnectionProbe.Facts {
        await BlockingWork.run { probe.run(reaching: reaching, names: names, within: limit) }
    }

    // MARK: Faults

    /// The proxy's own words and remedy for a failure at this server.
    func fault(_ error: TransportError, _ place: String = "") -> Finding {
        let check =
            switch error.kind {
            case .nameNotResolved, .nameTimedOut: "name"
            case .loop, .addressDenied: "address"
            case .connectionRefused, .connectionFailed, .connectionTimedOut, .shortage: "TCP"
            case .tlsHandshake, .tlsCertificate, .tlsConfiguration: "TLS"
            case .proxy: "next proxy"
            default: "HTTP"
            }
        // libcurl's message about TCP has times, so the same fault would differ at each upstream.
        let text = check == "TCP" ? FailureCause.words(error.kind) : FailureCause.text(error)
        return .failed(check, place + text, remedy(of: error))
    }

    private func remedy(of error: TransportError) -> String {
        advice?.sentence(for: HeimdallrHTTPClientError(error), of: origin.authority) ?? error.upstreamRemedy
    }

    // MARK: TLS

    private func handshake(_ facts: ConnectionProbe.Facts, _ isBehindProxy: Bool) -> [Finding] {
        let certificates = facts.certificates.isEmpty ? [] : (try? X509Certificate.all(pem: facts.certificates)) ?? []
        if let failure = facts.failure { return [fault(of: failure, certificates, isBehindProxy)] }
        guard origin.scheme == .https else { return [] }
        guard let first = certificates.first else { return [.good("TLS", facts.version ?? "TLS")] }
        var findings = [
            Finding.good("TLS", "\(facts.version ?? "TLS"), \(Self.described(first))", after: facts.securedAfter)
        ]
        if first.notAfter - WallClock.now() < Self.warningTime {
            let text = "the server's certificate ends on \(first.notAfter.day)"
            findings.append(.warning("TLS", text, "renew it at the server before that"))
        }
        switch (options.certificateFile != nil, facts.asksForCertificate) {
        case (false, false): break
        case (true, true): findings.append(.good("certificate", "the server requests our certificate, and accepts it"))
        case (false, true):
            let text = "the server requests a client certificate, but accepted a handshake without one"
            let remedy = "if it refuses requests, name a certificate in tls.cert_file, and its key in tls.key_file"
            findings.append(.warning("certificate", text, remedy))
        case (true, false):
            let text = "the server did not ask for the client certificate that is configured"
            findings.append(.warning("certificate", text, "check that the address is right"))
        }
        return findings
    }

    private func fault(
        of failure: TransportError, _ certificates: [X509Certificate], _ isBehindProxy: Bool
    ) -> Finding {
        switch failure.kind {
        case .tlsCertificate, .tlsHandshake, .tlsConfiguration: break
        case .connectionTimedOut where !isBehindProxy:
            return .failed(
                "TLS", "the port accepts connections and then sends nothing: no TLS handshake in time",
                "check that the port speaks TLS, that the server is not overloaded, and the firewalls in between")
        case _ where isBehindProxy:
            let error = TransportError(.proxy, message: failure.message, nextProxy: failure.nextProxy)
            let text = "the next proxy does not connect to \(origin.host):\(origin.port): \(FailureCause.text(failure))"
            return .failed("next proxy", text, remedy(of: error))
        default: return fault(failure)
        }
        let fault = TLSFault(words: failure.message)
        let (cause, remedy) = fault.parts(advice == nil ? .upstream : .authorizationServer)
        var text = fault == .other ? FailureCause.text(failure) : cause
        var names = ""
        switch fault {
        case .expired:
            // The expired certificate may be that of an issuer.
            let expired = certificates.first { $0.notAfter < WallClock.now() }
            text += expired.map { " on \($0.notAfter.day)" } ?? ""
        case .notYetValid: text += certificates.first.map { " before \($0.notBefore.day)" } ?? ""
        case .unknownAuthority:
            guard certificates.count == 1 else { break }
            let isOwn = certificates[0].subject == certificates[0].issuer
            text += isOwn ? "; it is self-signed" : "; the server shows no intermediate certificate"
        case .otherName:
            names = certificates.first?.names ?? ""
            let host = origin.serverName ?? origin.host
            text += " than \(host)" + (names.isEmpty ? "" : "; it is for \(ForeignText.printable(names))")
        default: break
        }
        if names.isEmpty, let first = certificates.first { text += ": \(Self.described(first))" }
        return .failed("TLS", text, remedy)
    }

    private static func described(_ certificate: X509Certificate) -> String {
        ForeignText.printable(
            "\(certificate.subject), issued by \(certificate.issuer), until \(certificate.notAfter.day)")
    }
}
