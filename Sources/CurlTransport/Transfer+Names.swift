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
        if hosts(isProxyMissing: true).allSatisfy({ Self.isKnown($0.name) }),
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
    func hosts(isProxyMissing: Bool) -> [NameLookUp.Host] {
        guard let origin else { return [] }
        let url: String?
        switch pool.options.nextProxy {
        case .none: url = nil
        case .environment: url = isProxyMissing ? NextHop.named(for: origin.scheme) : nil
        case .url(let own): url = own
        }
        return NameLookUp.hosts(for: origin, by: url.flatMap { try? NextProxyAddress($0) })
    }

    /// Gives the handle the addresses and the time left.
    func set(names lines: [String], connectTime: Duration) throws(TransportError) {
        let handle = unsafe easy.pointer
        try unsafe HandleOptions(easy).set(addresses: lines, &resolve)
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
        let hosts = transfer.hosts(isProxyMissing: code == CURLE_COULDNT_RESOLVE_PROXY)
        guard !hosts.isEmpty else { return false }
        let names = NameLookUp(hosts, options, deadline: deadline, on: loop)
        transfer.names = names
        detach(transfer)
        names.start { [unowned self, unowned transfer, unowned names] result in
            if names.foundOwn { transfer.verdict = .own }
            do throws(TransportError) {
                let left = deadline.since(max(loop.now, .current()))
                try transfer.set(names: result.get(), connectTime: left)
                try attach(transfer)
            } catch {
                finish(transfer, error)
            }
        }
        return true
    }
}
