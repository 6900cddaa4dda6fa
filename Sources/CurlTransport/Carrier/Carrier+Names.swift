import CLibcurl
import Reactor

// libcurl looks no name up: it gets the addresses (CURLOPT_RESOLVE(3)) before it dials.
extension Carrier {
    private var hosts: [NameLookUp.Host] {
        NameLookUp.hosts(for: origin, by: hop.proxy.isEmpty ? nil : try? NextProxyAddress(hop.proxy))
    }

    /// Whether libcurl may ask for the address of a host that needs no look-up.
    var hasNumericHost: Bool { hosts.contains { NameLookUp.isNumeric($0.name) } }

    /// Looks up the names of the connection, then calls `dial`. The request fails when a name has no address.
    func lookUpNames(on loop: EventLoop, dial: @escaping (Carrier) -> Void) {
        let unknown = hosts.filter { !NameLookUp.isNumeric($0.name) }
        guard !unknown.isEmpty else { return dial(self) }
        let names = NameLookUp(unknown, pool.options, deadline: dialling.deadline, on: loop)
        dialling.names = names
        names.start { [unowned self, unowned names] result in
            if names.foundOwn { dialling.verdict = .own }
            do throws(TransportError) {
                try unsafe HandleOptions(easy).set(addresses: result.get(), &dialling.resolve)
            } catch {
                return pool.dialled(self, error)
            }
            dialling.names = nil
            dial(self)
        }
    }
}
