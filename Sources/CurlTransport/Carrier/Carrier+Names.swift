import CLibcurl
import Reactor

// libcurl looks no name up: it is told the addresses (CURLOPT_RESOLVE(3)) before it dials.
extension Carrier {
    /// Those whose addresses have to be looked up for the connection.
    var parties: [NameRound.Party] { involved.filter { !Self.isWrittenOut($0.host) } }

    /// Whether libcurl may ask for the address of a host that needs no look-up.
    var hasWrittenOutHost: Bool { involved.contains { Self.isWrittenOut($0.host) } }

    /// Whose addresses libcurl needs.
    private var involved: [NameRound.Party] {
        var parties: [NameRound.Party] = []
        if !hop.proxy.isEmpty, let proxy = try? NextProxyAddress(hop.proxy) {
            parties.append(NameRound.Party(host: proxy.host, port: proxy.port, isDialled: true))
            if proxy.wantsAddresses {
                parties.append(NameRound.Party(host: origin.host, port: origin.port, isDialled: false))
            }
        } else {
            parties.append(NameRound.Party(host: origin.host, port: origin.port, isDialled: true))
        }
        return parties
    }

    private static func isWrittenOut(_ host: String) -> Bool {
        NumericAddress(host) != nil || host.hasPrefix("[")
    }

    /// Looks up what it needs, and then has `dial` called; the request fails where it can't be had.
    func lookUpNames(on loop: EventLoop, dial: @escaping (Carrier) -> Void) {
        let parties = parties
        guard !parties.isEmpty else { return dial(self) }
        let round = NameRound(parties, deadline: deadline)
        names = round
        round.timer = LoopTimer(on: loop) { [unowned self] in
            pool.dialled(
                self, TransportError(.connectionTimedOut, message: "the look-up of a name took too long"))
        }
        round.timer?.schedule(at: deadline)
        askNext(round, loop, dial)
    }

    private func askNext(_ round: NameRound, _ loop: EventLoop, _ dial: @escaping (Carrier) -> Void) {
        guard let party = round.left.first else {
            names = nil
            return tell(round, dial)
        }
        let options = pool.options
        let question = options.names.ask(
            party.host, isStrange: options.addressPolicy.publicOnly && party.isDialled, on: loop
        ) { [weak self, weak round] answer in
            guard let self, let round, names === round else { return }
            round.left.removeFirst()
            do throws(TransportError) {
                try take(answer, of: party, round)
            } catch {
                return pool.dialled(self, error)
            }
            askNext(round, loop, dial)
        }
        if names === round, question != nil { round.question = question }
    }

    private func take(_ answer: NameAnswer, of party: NameRound.Party, _ round: NameRound) throws(TransportError) {
        let addresses: [NumericAddress]
        do throws(NameError) {
            addresses = try answer.get()
        } catch {
            // The next proxy's fault, where it is its name.
            let isProxy = party.isDialled && !hop.proxy.isEmpty
            throw TransportError(isProxy ? .proxy : .nameNotResolved, message: error.description)
        }
        round.lines.append(NameRound.line(party, party.isDialled ? try allowed(addresses, party) : addresses))
    }

    /// Those that may be dialled; each is judged again when it is.
    private func allowed(
        _ addresses: [NumericAddress], _ party: NameRound.Party
    ) throws(TransportError) -> [NumericAddress] {
        var hasOwn = false
        let allowed = addresses.filter { address in
            let verdict = pool.options.addressPolicy.judge(address.socketAddress(port: party.port))
            if verdict == .own { hasOwn = true }
            return verdict == .allowed
        }
        if hasOwn { verdict = .own }
        guard allowed.isEmpty else { return allowed }
        let found = addresses.map(\.description).joined(separator: ", ")
        throw TransportError(
            hasOwn ? .loop : .addressDenied, message: "\(party.host) is at \(found), which may not be dialled")
    }

    private func tell(_ round: NameRound, _ dial: (Carrier) -> Void) {
        do throws(TransportError) {
            for line in round.lines {
                guard let longer = unsafe curl_slist_append(resolve, line) else {
                    throw TransportError(.internal, message: "curl_slist_append: out of memory")
                }
                unsafe resolve = longer
            }
            try check(unsafe heimdallr_easy_set_list(easy.pointer, CURLOPT_RESOLVE, resolve), "CURLOPT_RESOLVE")
        } catch {
            return pool.dialled(self, error)
        }
        dial(self)
    }
}
