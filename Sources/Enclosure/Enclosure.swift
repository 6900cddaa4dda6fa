import Glibc
public import Reactor

/// A program's enclosure, as its launcher sees it: the process inside, and the connection to it.
///
/// The program is in a user, network and mount namespace of its own. Each address is local there, and only the proxy's
/// sockets answer. user_namespaces(7), network_namespaces(7), mount_namespaces(7). Blocks: not for a loop's thread.
public final class Enclosure: Sendable {
    /// The sockets inside, which the launcher serves.
    public struct Sockets: Sendable {
        /// Listening TCP sockets.
        public var listeners: [PassedSocket] = []
        /// TCP sockets of the name server.
        public var names: [PassedSocket] = []
        /// UDP sockets of the name server.
        public var datagrams: [Int32] = []

        /// Closes all sockets. Copies that others have made stay open.
        public func close() {
            for socket in listeners + names { socket.close() }
            for socket in datagrams { Glibc.close(socket) }
        }
    }

    /// What could not be had. The program runs without it.
    public enum Lack: String, Sendable { case mounts, readOnlyKernel, otherUsers }

    private let link: EnclosureLink
    private let process: PeerCredentials

    /// - Parameters:
    ///   - link: descriptor of the connection to the process, which this value closes.
    ///   - process: the process, which is about to enclose itself.
    public init(link: Int32, process: PeerCredentials) {
        self.link = EnclosureLink(link)
        self.process = process
    }

    /// - Parameters:
    ///   - stream: a connection that the process has opened.
    ///   - process: the process at its other end.
    /// - Throws: `SystemError` without free descriptors.
    public convenience init(accepted stream: StreamSocket, from process: PeerCredentials) throws(SystemError) {
        let copy = fcntl(stream.descriptor, F_DUPFD_CLOEXEC, 0)
        guard copy >= 0 else { throw SystemError("fcntl") }
        _ = fcntl(copy, F_SETFL, fcntl(copy, F_GETFL) & ~O_NONBLOCK)
        // A process that stops half-way gives its thread back.
        var patience = timeval(tv_sec: 30, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            _ = unsafe setsockopt(copy, SOL_SOCKET, option, &patience, socklen_t(MemoryLayout<timeval>.size))
        }
        self.init(link: copy, process: process)
    }

    /// Sends the first words of a process that its launcher did not start. See `FirstMessage`.
    public static func greet(_ link: Int32, _ words: [String]) -> Bool { EnclosureLink.send(words, to: link) }

    /// Says why the program is not enclosed.
    public func refuse(_ reason: String) {
        _ = link.send([EnclosureProcess.Message.refused.rawValue, reason])
    }

    /// Makes the namespaces with the sockets of `plan`.
    /// - Throws: the reason why this machine refuses them.
    public func open(_ plan: EnclosurePlan) throws(EnclosureRefusal) -> (sockets: Sockets, lacks: [Lack]) {
        guard link.send(plan.words) else { throw EnclosureRefusal.gone }
        _ = try receive(.unshared)
        let isRoot = process.user == 0
        let mapsAll = isRoot && geteuid() == 0 && EnclosureIdentity.mapAll(of: process.process)
        let answer = mapsAll ? EnclosureProcess.Message.mapped : .mapOwn
        guard link.send([answer.rawValue]) else { throw EnclosureRefusal.gone }
        var sockets = Sockets()
        do throws(EnclosureRefusal) {
            while let message = try receive(.sockets, or: .opened) {
                let places = message.words.compactMap { Int($0) }.filter { plan.listeners.indices.contains($0) }
                guard places.count == message.descriptors.count else {
                    for one in message.descriptors { close(one) }
                    throw EnclosureRefusal.gone
                }
                for (index, descriptor) in message.descriptors.enumerated() {
                    do throws(EnclosureRefusal) {
                        try sockets.add(descriptor, plan.listeners[places[index]], process)
                    } catch {
                        for one in message.descriptors[index...] { close(one) }
                        throw error
                    }
                }
            }
        } catch {
            sockets.close()
            throw error
        }
        return (sockets, isRoot && !mapsAll ? [.otherUsers] : [])
    }

    /// Starts the program, and returns once it runs.
    /// - Parameters:
    ///   - setting: variables to set.
    /// - Throws: the reason why it does not run. If that is the program's, `isOfProgram` is set.
    public func start(
        setting: [String: String], _ mounts: EnclosureMounts
    ) throws(EnclosureRefusal) -> [Lack] {
        let words = setting.map { "\($0.key)=\($0.value)" }
        guard link.send(words), link.send(mounts.words) else { throw EnclosureRefusal.gone }
        var lacks: [Lack] = []
        while let (words, _) = link.receive() {
            guard words.count == 2, words[0] == EnclosureProcess.Message.lack.rawValue,
                let lack = Lack(rawValue: words[1])
            else { throw EnclosureRefusal(words) }
            lacks.append(lack)
        }
        return lacks
    }

    /// Returns the rest of the expected message; `nil` for `end`.
    private func receive(
        _ expected: EnclosureProcess.Message, or end: EnclosureProcess.Message? = nil
    ) throws(EnclosureRefusal) -> (words: ArraySlice<String>, descriptors: [Int32])? {
        guard let (words, descriptors) = link.receive() else { throw EnclosureRefusal.gone }
        let message = words.first.flatMap { EnclosureProcess.Message(rawValue: $0) }
        guard message == expected else {
            for one in descriptors { close(one) }
            guard message == end else { throw EnclosureRefusal(words) }
            return nil
        }
        return (words.dropFirst(), descriptors)
    }
}

extension Enclosure.Sockets {
    fileprivate mutating func add(
        _ descriptor: Int32, _ listener: EnclosurePlan.Listener, _ process: PeerCredentials
    ) throws(EnclosureRefusal) {
        guard listener.transport == .tcp else { return datagrams.append(descriptor) }
        do throws(PassedSocket.Fault) {
            let socket = try PassedSocket(enclosed: descriptor, process: process)
            if listener.address.port == EnclosurePlan.names { names.append(socket) } else { listeners.append(socket) }
        } catch { throw EnclosureRefusal(description: "\(error)") }
    }
}
