import Reactor
import WireText

/// A host whose addresses a connection needs.
public struct DialledHost: Sendable, Hashable {
    /// Canonical name or address, IPv6 in brackets.
    public let name: String
    public let port: UInt16
    /// Whether the connection goes to this host. Otherwise a proxy gets the host's address.
    let isDialled: Bool
    let isProxy: Bool

    var isNumeric: Bool { NumericAddress(name) != nil || name.hasPrefix("[") }
}

/// Finds the addresses of the hosts of one connection, because libcurl must look up no name itself. Loop's thread only.
final class NameLookUp {
    typealias Found = (host: DialledHost, addresses: [SocketAddress])

    private let deadline: LoopTime
    /// Whether one of the addresses is a listener of this process.
    private(set) var foundOwn = false
    private let options: PoolOptions
    private let loop: EventLoop
    private var left: [DialledHost]
    private var found: [Found] = []
    private var question: NameQuestion?
    private var timer: LoopTimer?
    private var done: ((Result<[Found], TransportError>) -> Void)?

    init(_ hosts: [DialledHost], _ options: PoolOptions, deadline: LoopTime, on loop: EventLoop) {
        left = hosts
        self.options = options
        self.deadline = deadline
        self.loop = loop
    }

    deinit { question?.abandon() }

    /// Returns a line for CURLOPT_RESOLVE(3). Its `+` limits the addresses' life to CURLOPT_DNS_CACHE_TIMEOUT(3).
    static func line(_ host: DialledHost, _ addresses: [NumericAddress]) -> String {
        "+\(host.name):\(host.port):\(addresses.map(\.description).joined(separator: ","))"
    }

    /// - Parameter done: called once with the addresses in the order of dialling, possibly before this returns.
    func start(_ done: @escaping (Result<[Found], TransportError>) -> Void) {
        guard !left.isEmpty else { return done(.success([])) }
        self.done = done
        timer = LoopTimer(on: loop) { [unowned self] in
            finish(.failure(timedOut))
        }
        timer?.schedule(at: deadline)
        askNext()
    }

    private var timedOut: TransportError {
        let name = left.first?.name ?? ""
        return TransportError(
            left.first?.isProxy == true ? .proxy : .nameTimedOut,
            message: "could not resolve host \(name): no name server answered in time")
    }

    private func finish(_ result: Result<[Found], TransportError>) {
        let done = done
        self.done = nil
        timer = nil
        question?.abandon()
        question = nil
        done?(result)
    }

    private func askNext() {
        guard let host = left.first else { return finish(.success(found)) }
        let question = options.names.ask(
            host.name, isFromProgram: options.addressPolicy.publicOnly && host.isDialled, on: loop
        ) { [weak self] answer in
            guard let self, done != nil else { return }
            left.removeFirst()
            do throws(TransportError) {
                try take(answer, of: host)
            } catch {
                return finish(.failure(error))
            }
            askNext()
        }
        if done != nil, question != nil { self.question = question }
    }

    private func take(_ answer: NameAnswer, of host: DialledHost) throws(TransportError) {
        let addresses: [NumericAddress]
        do throws(NameError) {
            addresses = try answer.get()
        } catch {
            if let shortage = MachineShortage.ofSockets {
                throw TransportError(.shortage(shortage), message: error.description)
            }
            throw TransportError(host.isProxy ? .proxy : .nameNotResolved, message: error.description)
        }
        let usable = host.isDialled ? try allowed(addresses, host) : addresses
        found.append((host, options.names.silent.order(usable.map { $0.socketAddress(port: host.port) })))
    }

    /// Returns the addresses that may be dialled; throws if there are none. Each is judged again when it is dialled.
    private func allowed(_ addresses: [NumericAddress], _ host: DialledHost) throws(TransportError) -> [NumericAddress]
    {
        let allowed = addresses.filter { address in
            let verdict = options.addressPolicy.judge(address.socketAddress(port: host.port))
            if verdict == .own { foundOwn = true }
            return verdict == .allowed
        }
        guard allowed.isEmpty else { return allowed }
        let found = addresses.map(\.description).joined(separator: ", ")
        throw TransportError(
            foundOwn ? .loop : .addressDenied, message: "\(host.name) is at \(found), which may not be dialled")
    }
}
