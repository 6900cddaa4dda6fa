import Glibc
import HTTPMessage
import Reactor
import WireText

/// The way of one connection to its server: gets the next proxy's token, looks up the names, and connects to one of
/// several addresses. libcurl then gets the connected socket. A single address is left to libcurl. Loop's thread only.
final class Approach {
    private let names: NameLookUp
    private let silent: SilentAddresses
    private let deadline: LoopTime
    private let loop: EventLoop
    private var race: ConnectionRace?
    /// Whether the last socket that libcurl asked for was connected.
    private(set) var gaveSocket = false
    private let negotiation: (identity: KerberosIdentity, host: String)?
    private var pending: PendingToken?
    /// Value of Proxy-Authorization for this connection; empty for none.
    private(set) var authorization: [UInt8] = []
    /// Addresses, among several of their names, on which the connection now depends.
    private var chosen: [SocketAddress] = []
    /// Whether one of the addresses is a listener of this process.
    var foundOwn: Bool { names.foundOwn }

    init(_ origin: Origin, by hop: NextHop, _ options: PoolOptions, deadline: LoopTime, on loop: EventLoop) {
        let hosts = options.unixSocket == nil ? hop.hosts(to: origin).filter { !$0.isNumeric } : []
        names = NameLookUp(hosts, options, deadline: deadline, on: loop)
        silent = options.names.silent
        negotiation = hop.negotiation
        self.deadline = deadline
        self.loop = loop
    }

    deinit { pending?.abandon() }

    /// - Parameter done: called once with the lines for CURLOPT_RESOLVE(3), possibly before this returns.
    func start(_ done: @escaping (Result<[String], TransportError>) -> Void) {
        guard let (identity, host) = negotiation else { return lookUp(done) }
        pending = PendingToken(identity, for: host, before: deadline, on: loop) { [unowned self] answer in
            do throws(TransportError) {
                authorization = Self.field(try answer.get())
                lookUp(done)
            } catch { done(.failure(error)) }
        }
    }

    /// Value of Proxy-Authorization (RFC 4559, section 4.1).
    static func field(_ token: [UInt8]) -> [UInt8] { Array("Negotiate \(Base64.encode(token))".utf8) }

    private func lookUp(_ done: @escaping (Result<[String], TransportError>) -> Void) {
        names.start { [unowned self] result in
            do throws(TransportError) { connect(try result.get(), done) } catch { done(.failure(error)) }
        }
    }

    /// Returns the connected socket once; `nil` if libcurl has to connect. The caller then owns it.
    func take() -> (descriptor: Int32, address: SocketAddress)? {
        let socket = race?.take()
        gaveSocket = socket != nil
        return socket
    }

    /// Whether there was more than one address to connect to.
    var hasRaced: Bool { race != nil }

    /// Makes the next connections try other addresses first.
    func failed() { silent.note(chosen) }

    private func connect(_ found: [NameLookUp.Found], _ done: @escaping (Result<[String], TransportError>) -> Void) {
        // A SOCKS proxy gets only the first address of its target.
        chosen = found.filter { !$0.host.isDialled && $0.addresses.count > 1 }.compactMap(\.addresses.first)
        let lines = found.map { NameLookUp.line($0.host, $0.addresses.compactMap { NumericAddress($0) }) }
        guard let index = found.firstIndex(where: { $0.host.isDialled && $0.addresses.count > 1 }) else {
            return done(.success(lines))
        }
        let (host, addresses) = found[index]
        let race = ConnectionRace(addresses, silent, deadline: deadline, on: loop)
        self.race = race
        race.start { [unowned self] result in
            do throws(ConnectionRace.NoneAccepted) {
                let address = try result.get()
                chosen.append(address)
                var lines = lines
                lines[index] = NameLookUp.line(host, [address].compactMap { NumericAddress($0) })
                done(.success(lines))
            } catch { done(.failure(TransportError(error, of: host))) }
        }
    }
}

extension TransportError {
    /// Makes the error for a host of which no address accepted a connection.
    fileprivate init(_ failure: ConnectionRace.NoneAccepted, of host: DialledHost) {
        let codes = failure.reasons.compactMap(\.error?.code)
        let reasons = failure.reasons.map { "\($0.address): \($0.error?.description ?? "no answer")" }
        var kind = Kind.connectionFailed
        if codes.count < reasons.count || codes.contains(ETIMEDOUT) {
            kind = .connectionTimedOut
        } else if codes.contains(ECONNREFUSED) {
            kind = .connectionRefused
        } else if let shortage = codes.last.flatMap({ MachineShortage(errno: $0) }) {
            kind = .shortage(shortage)
        }
        self.init(
            host.isProxy && kind.isOfPeer ? .proxy : kind,
            message: "no connection to \(host.name): \(reasons.joined(separator: "; "))")
    }
}
