import Enclosure
import Reactor
import Synchronization

/// Connections to the enclosures' socket, until their first message has come. Loop's thread only.
final class EnclosureArrivals {
    typealias Begun = (_ stream: StreamSocket, _ peer: PeerCredentials, _ words: [String]) -> Void

    private let loop: EventLoop
    private let begun: Begun
    private var acceptor: Acceptor?
    /// The one that has waited longest first.
    private var waiting: [FirstMessage] = []

    /// Limit of waiting connections. A further one takes the place of the first, since programs do not wait.
    private static let most = 256

    /// - Parameter begun: called for each connection of this process's user and root, with its first message.
    /// - Throws: `SystemError` without free descriptors.
    init(_ socket: ListeningSocket, on loop: EventLoop, _ begun: @escaping Begun) throws(SystemError) {
        self.loop = loop
        self.begun = begun
        acceptor = try Acceptor(socket, on: loop, accepted: { [unowned self] in accept($0) }, failed: { _ in })
    }

    func close() {
        acceptor?.close()
        while let first = waiting.first { first.end() }
    }

    private func accept(_ stream: StreamSocket) {
        guard let peer = stream.peerCredentials, [ProcessIdentity.user, 0].contains(peer.user) else { return }
        if waiting.count >= Self.most { waiting[0].end() }
        let message = FirstMessage(stream, on: loop)
        waiting.append(message)
        message.begin { [unowned self, unowned message] words in
            waiting.removeAll { $0 === message }
            if let words { begun(stream, peer, words) }
        }
    }
}

/// Programs that are being enclosed, by user. Each one holds a thread, for at most 30 s a step. Any thread.
final class EnclosureStarts: Sendable {
    private let counts = Mutex<[UInt32: Int]>([:])

    /// Limit of a user's programs.
    private static let most = 100
    static let refusal = "the running proxy is enclosing \(most) programs of this user already: try again"

    /// - Returns: whether one more may begin.
    func begin(_ user: UInt32) -> Bool {
        counts.withLock { counts in
            guard counts[user, default: 0] < Self.most else { return false }
            counts[user, default: 0] += 1
            return true
        }
    }

    func end(_ user: UInt32) { counts.withLock { $0[user, default: 1] -= 1 } }
}
