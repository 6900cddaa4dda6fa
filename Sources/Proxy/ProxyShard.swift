import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import Reports
import TLSServer

/// One loop's part of the proxy: its connections from programs, and the current rules.
final class ProxyShard {
    let loop: EventLoop
    private(set) var observer: ProxyObserver
    /// `nil`: no spans are recorded.
    private(set) var sampler: TraceSampler?
    /// Random numbers for the sampler.
    var random = FastRandom()
    /// Rules of new requests.
    private(set) var installed: InstalledPlan
    private let streams: UpstreamStreamPool
    let endedPrograms: EndedPrograms
    /// Former rules that are still in use.
    private var retiring: [InstalledPlan] = []
    let counters = CounterTable()
    private var server: ServerLoop?
    private(set) lazy var tls = TLSServerLoop(on: loop)
    var limitLines = LimitLines()
    /// The last requests, if `observer.keepsRequests`, and the IDs of all.
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var ring = RequestRing()
    private(set) lazy var listenerTLS = ListenerTLSState(loop: loop)
    /// Listeners of enclosures by number, which is negative.
    private var enclosed: [Int: EnclosedListener] = [:]

    /// - Parameter sockets: this loop's sockets, one per listener of the plan.
    init(_ plan: ProxyPlan, sockets: [ListeningSocket], loop: EventLoop) throws {
        self.loop = loop
        observer = plan.observer
        sampler = plan.observer.spans?.sampler
        streams = UpstreamStreamPool(loop: loop)
        endedPrograms = EndedPrograms(loop: loop)
        installed = InstalledPlan(plan, former: nil, counters: counters, streams: streams, loop: loop)
        let server = ServerLoop(
            ServerSettings(plan.configuration.proxy), on: loop,
            wrapStream: { [unowned self] in secure($0, listener: $1) },
            acceptFailed: { [unowned self] in observer.acceptFailed($0) },
            makeHandler: { [unowned self] in Forwarder(Context($0, shard: self)) })
        for (listener, socket) in zip(plan.listeners, sockets) {
            try server.listen(socket, listener: listener.number)
        }
        self.server = server
    }

    // MARK: Another configuration

    /// Prepares the rules of another configuration. Nothing changes yet.
    func prepare(_ plan: ProxyPlan) -> InstalledPlan {
        InstalledPlan(plan, former: installed, counters: counters, streams: streams, loop: loop)
    }

    /// Makes `next` the rules of new requests. Requests under way keep their rules.
    /// - Parameter done: called when the former rules are no longer used.
    func install(
        _ next: InstalledPlan, _ plan: ProxyPlan, opened: [(number: Int, socket: ListeningSocket)], closed: [Int],
        done: @escaping () -> Void
    ) {
        let former = installed
        next.takeOver(former)
        installed = next
        observer = plan.observer
        sampler = plan.observer.spans?.sampler
        server?.update(ServerSettings(next.settings))
        for (number, socket) in opened {
            do throws(SystemError) { try server?.listen(socket, listener: number) } catch {
                observer.acceptFailed(error)
            }
        }
        for number in closed { server?.stopListening(number) }
        counters.keep(next.layout)
        retiring.append(former)
        former.retire { [unowned self] in
            retiring.removeAll { $0 === former }
            done()
        }
    }

    /// Wipes the copies of a client's token.
    func forgetCredentials(of client: Heimdallr) {
        for installed in plansInUse { installed.forgetCredentials(of: client) }
    }

    // MARK: Listeners

    /// Returns a listener as `rules` know it; `nil` if they have none with this number.
    func listener(_ number: Int, under installed: InstalledPlan) -> ProxyPlan.Role? {
        number >= 0 ? installed.listeners[number] : enclosed[number].map { installed.plan.role(ofEnclosed: $0.address) }
    }

    /// Returns the enclosed programs behind a listener; `nil` for one of the configuration.
    func enclosedPrograms(at number: Int) -> EnclosedPrograms? { number >= 0 ? nil : enclosed[number]?.programs }

    /// Accepts connections of enclosed programs.
    func enclose(_ socket: ListeningSocket, number: Int, _ programs: EnclosedPrograms) {
        enclosed[number] = EnclosedListener(address: socket.address, programs: programs)
        do throws(SystemError) { try server?.listen(socket, listener: number) } catch { observer.acceptFailed(error) }
    }

    /// Closes a listener of an enclosure. Requests in flight end.
    func release(_ number: Int) {
        server?.stopListening(number)
        enclosed[number] = nil
    }

    // MARK: The report

    /// The current rules, and former rules that are still in use.
    var plansInUse: [InstalledPlan] { [installed] + retiring }

    var programs: (open: Int, limit: Int) { server.map { ($0.count, $0.settings.maxConnections) } ?? (0, 0) }

    var lag: (name: String, lag: Histogram) {
        (loop.name, Histogram(nanoseconds: LoopLag.bounds, counts: loop.lag.counts, sum: loop.lag.nanoseconds))
    }

    // MARK: Requests

    func nextRequestID() -> [UInt8] { ring.ids.next() }

    func nextRequestNumber() -> UInt64 { ring.ids.nextNumber() }

    /// Adds the last requests after the first `seen` to `report`.
    func addRequests(to report: inout RecentRequests, after seen: UInt64) {
        ring.add(to: &report, after: seen, loop.now)
    }

    // MARK: Stopping

    /// Makes each further answer end its connection.
    func leave() { server?.leave() }

    /// Stops accepting and lets requests finish. Calls `done` after the last connection has closed.
    func drain(_ done: @escaping () -> Void) {
        guard let server else { return done() }
        server.drain(done)
    }

    func stop() { server?.stop() }
}

extension ServerSettings {
    init(_ settings: ProxySettings) {
        self.init()
        servesHTTP2 = true
        headerTimeout = Timeout(settings.headerTimeout)
        idleTimeout = Timeout(settings.idleTimeout)
        maxHeaderBytes = settings.maxHeaderBytes
        drainIdleTimeout = ProxyServer.drainIdleTimeout
        maxConnections = max(1, ProxyServer.programLimit(settings) / max(1, settings.threads))
    }
}
