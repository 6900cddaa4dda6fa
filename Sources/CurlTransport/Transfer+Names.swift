import CLibcurl
import Reactor

// libcurl looks no name up. It asks before a look-up (CURLOPT_RESOLVER_START_FUNCTION(3)), only when no kept connection
// serves. This attempt fails, `NameLookUp` finds the addresses, and the same handle starts again with them
// (CURLOPT_RESOLVE(3)).
extension Transfer {
    /// Limit of attempts: libcurl may write a name differently.
    static let maxRounds = 3

    /// Whether libcurl may continue: all hosts are numeric, or this machine.
    func needsNoNames() -> Bool {
        if parties(isProxyMissing: true).allSatisfy({ Self.isKnown($0.host) }),
            origin.map({ Self.isKnown($0.host) }) ?? true
                || isOriginRemote
        {
            return true
        }
        missesName = true
        return false
    }

    private static func isKnown(_ host: String) -> Bool {
        NumericAddress(host) != nil || host == "localhost" || host.hasSuffix(".localhost") || host.hasPrefix("[")
    }

    /// Whether only the next proxy looks up the upstream's name.
    private var isOriginRemote: Bool {
        guard case .url(let url) = pool.options.nextProxy, let proxy = try? NextProxyAddress(url) else { return false }
        return !proxy.wantsAddresses
    }

    /// Hosts whose addresses libcurl needs for the connection.
    /// - Parameter isProxyMissing: whether a proxy's address is missing. Only libcurl knows if it uses one from the
    ///   environment.
    func parties(isProxyMissing: Bool) -> [NameRound.Party] {
        guard let origin else { return [] }
        let proxy: NextProxyAddress?
        switch pool.options.nextProxy {
        case .none: proxy = nil
        case .environment:
            proxy = isProxyMissing ? NextHop.named(for: origin.scheme).flatMap { try? NextProxyAddress($0) } : nil
        case .url(let url): proxy = try? NextProxyAddress(url)
        }
        guard let proxy else { return [NameRound.Party(host: origin.host, port: origin.port, isDialled: true)] }
        let first = NameRound.Party(host: proxy.host, port: proxy.port, isDialled: true)
        guard proxy.wantsAddresses else { return [first] }
        return [first, NameRound.Party(host: origin.host, port: origin.port, isDialled: false)]
    }

    /// Gives the handle the addresses and the time left.
    func set(names lines: [String], connectTime: Duration) throws(TransportError) {
        let handle = unsafe easy.pointer
        unsafe curl_slist_free_all(resolve)
        unsafe resolve = nil
        for line in lines {
            guard let longer = unsafe curl_slist_append(resolve, line) else {
                throw TransportError(.internal, message: "curl_slist_append: out of memory")
            }
            unsafe resolve = longer
        }
        try check(unsafe heimdallr_easy_set_list(handle, CURLOPT_RESOLVE, resolve), "CURLOPT_RESOLVE")
        try check(
            unsafe heimdallr_easy_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, max(1, connectTime.wholeMilliseconds)),
            "CURLOPT_CONNECTTIMEOUT_MS")
        unsafe errorText.pointee = 0
    }

    func forgetNames() {
        names = nil
        rounds = 0
        missesName = false
        guard unsafe resolve != nil else { return }
        let handle = unsafe easy.pointer
        _ = unsafe heimdallr_easy_set_list(handle, CURLOPT_RESOLVE, nil)
        _ = unsafe heimdallr_easy_set_long(
            handle, CURLOPT_CONNECTTIMEOUT_MS, max(1, pool.options.connectTimeout.wholeMilliseconds))
        unsafe curl_slist_free_all(resolve)
        unsafe resolve = nil
    }
}

extension ConnectionPool {
    /// Looks up the names that an exchange failed for.
    func lookUpNames(for transfer: Transfer, _ code: CURLcode) -> Bool {
        guard transfer.missesName, !transfer.isCancelled, transfer.rounds < Transfer.maxRounds else { return false }
        transfer.missesName = false
        transfer.rounds += 1
        let deadline = transfer.names?.deadline ?? loop.now + options.connectTimeout
        let round = NameRound(
            transfer.parties(isProxyMissing: code == CURLE_COULDNT_RESOLVE_PROXY), deadline: deadline)
        guard !round.left.isEmpty else { return false }
        transfer.names = round
        detach(transfer)
        round.timer = LoopTimer(on: loop) { [unowned self, unowned transfer] in
            finish(transfer, TransportError(.connectionTimedOut, message: "the look-up of a name took too long"))
        }
        round.timer?.schedule(at: deadline)
        askNext(transfer, round)
        return true
    }

    private func askNext(_ transfer: Transfer, _ round: NameRound) {
        guard let party = round.left.first else { return connect(transfer, round) }
        let question = options.names.ask(
            party.host, isStrange: options.addressPolicy.publicOnly && party.isDialled, on: loop
        ) { [weak self, weak transfer, weak round] answer in
            guard let self, let transfer, let round, transfer.names === round else { return }
            round.left.removeFirst()
            take(answer, of: party, transfer, round)
        }
        if transfer.names === round, question != nil { round.question = question }
    }

    private func take(_ answer: NameAnswer, of party: NameRound.Party, _ transfer: Transfer, _ round: NameRound) {
        do throws(TransportError) {
            let addresses: [NumericAddress]
            do throws(NameError) {
                addresses = try answer.get()
            } catch {
                // The next proxy's fault, where it is its name.
                let isProxy = party.isDialled && party.host != transfer.origin?.host
                throw TransportError(isProxy ? .proxy : .nameNotResolved, message: error.description)
            }
            round.lines.append(
                NameRound.line(party, party.isDialled ? try allowed(addresses, party, transfer) : addresses))
        } catch {
            return finish(transfer, error)
        }
        askNext(transfer, round)
    }

    /// Those that may be dialled; each is judged again when it is.
    private func allowed(
        _ addresses: [NumericAddress], _ party: NameRound.Party, _ transfer: Transfer
    ) throws(TransportError) -> [NumericAddress] {
        var hasOwn = false
        let allowed = addresses.filter { address in
            let verdict = judge(address.socketAddress(port: party.port))
            if verdict == .own { hasOwn = true }
            return verdict == .allowed
        }
        if hasOwn { transfer.verdict = .own }
        guard allowed.isEmpty else { return allowed }
        let found = addresses.map(\.description).joined(separator: ", ")
        throw TransportError(
            hasOwn ? .loop : .addressDenied, message: "\(party.host) is at \(found), which may not be dialled")
    }

    private func connect(_ transfer: Transfer, _ round: NameRound) {
        round.timer = nil
        round.question = nil
        do throws(TransportError) {
            try transfer.set(names: round.lines, connectTime: round.deadline.since(max(loop.now, .current())))
            try attach(transfer)
        } catch {
            finish(transfer, error)
        }
    }
}
