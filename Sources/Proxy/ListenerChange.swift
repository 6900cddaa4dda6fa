import Configuration
import FileSystem
import Reactor

/// The listeners that a new configuration opens, keeps and closes. New listeners are bound, but do not accept yet.
struct ListenerChange: Sendable {
    struct Opened: Sendable {
        var listener: ProxyPlan.Listener
        /// One socket per loop.
        let sockets: [ListeningSocket]
    }

    /// All listeners after the change, in the order of the configuration.
    private(set) var listeners: [ProxyPlan.Listener] = []
    private(set) var opened: [Opened] = []
    private(set) var closed: [ProxyPlan.Listener] = []
    private(set) var lastNumber: Int
    /// Changed modes of kept Unix sockets that the service manager did not pass.
    private var modes: [(path: String, mode: UInt16)] = []

    /// - Parameters:
    ///   - former: open listeners of the configuration `before`.
    ///   - lastNumber: highest listener number used so far.
    /// - Throws: `ListenError`, after closing the listeners opened so far.
    init(
        from former: [ProxyPlan.Listener], of before: Configuration = Configuration(), to configuration: Configuration,
        lastNumber: Int, _ input: ListenInput
    ) throws(ProxyServer.ListenError) {
        self.lastNumber = lastNumber
        var input = input
        input.v4Ports = configuration.v4Ports
        var left = former
        var passed = PassedSockets(input.passed)
        do throws(ProxyServer.ListenError) {
            for (address, upstream) in configuration.listenAddresses {
                let kept = left.filter { $0.isKept(at: address, upstream, before, configuration) }
                guard kept.isEmpty else {
                    // A host name has one listener per address: all stay. Equal entries with port 0 keep one each.
                    let mine = address.isChosenByKernel ? Array(kept.prefix(1)) : kept
                    left.removeAll { one in mine.contains { $0.number == one.number } }
                    for listener in mine {
                        let isPassed = passed.claim(listener.bound, name: "") != nil
                        if case .unix(let path, let mode) = address, address != listener.address, !isPassed {
                            modes.append((path, mode ?? ProxyServer.defaultMode))
                        }
                        listeners.append(
                            ProxyPlan.Listener(
                                number: listener.number, address: address, bound: listener.bound, upstream: upstream))
                    }
                    continue
                }
                let name = configuration.passedName(upstream: upstream)
                let sockets: [[ListeningSocket]]
                do throws(ProxyServer.ListenError) {
                    sockets = try ProxyServer.open(address, name: name, &passed, input)
                } catch {
                    throw error.isInUse ? error.naming(former + listeners, at: address) : error
                }
                for sockets in sockets {
                    self.lastNumber += 1
                    let listener = ProxyPlan.Listener(
                        number: self.lastNumber, address: address, bound: sockets[0].address, upstream: upstream)
                    listeners.append(listener)
                    opened.append(Opened(listener: listener, sockets: sockets))
                }
            }
        } catch {
            abandon()
            throw error
        }
        closed = left
    }

    func abandon() { for socket in opened.flatMap(\.sockets) { socket.close() } }

    /// Sets the changed modes of kept Unix sockets.
    func setModes() { for (path, mode) in modes { _ = FileSystem.setMode(path, UInt32(mode)) } }
}

extension ProxyPlan.Listener {
    /// Whether an entry of `after` keeps this listener. With port 0, both must belong to `proxy.listen`, or to
    /// upstreams with the same host.
    fileprivate func isKept(
        at wanted: ListenAddress, _ index: Int?, _ before: Configuration, _ after: Configuration
    ) -> Bool {
        guard address.endpoint == wanted.endpoint else { return false }
        guard wanted.isChosenByKernel else { return true }
        return upstream.map { before.upstreams[$0].host } == index.map { after.upstreams[$0].host }
    }
}

extension Configuration {
    /// Ports of `proxy.listen`, the upstreams' listeners and `admin.listen` for IPv4, also by name.
    fileprivate var v4Ports: Set<UInt16> {
        let all = listenAddresses.map(\.address) + [admin?.listen].compactMap(\.self)
        return Set(all.compactMap { if case .tcp(let host, let port) = $0, !host.contains(":") { port } else { nil } })
    }
}

extension ProxyServer.ListenError {
    /// Names this process's own listener at the port, if there is one: `[::]` takes IPv4, too.
    fileprivate func naming(_ listeners: [ProxyPlan.Listener], at address: ListenAddress) -> Self {
        guard case .tcp(let host, let port) = address,
            let own = listeners.first(where: { listener in
                let takesAll = NumericAddress(listener.bound)?.isUnspecified ?? false
                return listener.bound.port == port && (takesAll || host == "0.0.0.0" || host == "::")
            })
        else { return self }
        var error = self
        error.description =
            "can't listen on \(address): this proxy itself listens at \(own.bound), which takes these connections, too: "
            + "restart the proxy to have both, or leave one of them out"
        return error
    }
}
