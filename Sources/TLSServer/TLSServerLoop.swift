import Reactor

/// The TLS connections of one loop that are in a handshake, or closed with unsent bytes. Limits their time and their
/// number. Loop's thread only.
public final class TLSServerLoop {
    let loop: EventLoop
    let spares = SpareBuffers()
    let front: TLSFront
    private let limit: Int
    private let patience: Duration
    /// Connections that have a deadline, the next deadline first.
    private var waiting: [(stream: TLSServerStream, deadline: LoopTime)] = []
    private var timer: LoopTimer?

    /// - Parameters:
    ///   - limit: limit of connections; at least 1. Beyond the limit, a new connection ends the oldest.
    ///   - patience: time for a handshake, or for the client to read some of the last bytes.
    public convenience init(on loop: EventLoop, limit: Int = 256, patience: Duration = .seconds(10)) {
        self.init(on: loop, limit: limit, patience: patience, front: .shared)
    }

    init(on loop: EventLoop, limit: Int, patience: Duration, front: TLSFront) {
        self.loop = loop
        self.front = front
        self.limit = limit
        self.patience = patience
        timer = LoopTimer(on: loop) { [unowned self] in deadlinePassed() }
    }

    /// Starts or restarts the deadline of a connection.
    func await(_ stream: TLSServerStream) {
        forget(stream)
        if waiting.count >= limit { waiting.removeFirst().stream.giveUp() }
        waiting.append((stream, loop.now + patience))
        if waiting.count == 1 { timer?.schedule(at: waiting[0].deadline) }
    }

    func forget(_ stream: TLSServerStream) {
        if let index = waiting.firstIndex(where: { $0.stream === stream }) { waiting.remove(at: index) }
    }

    private func deadlinePassed() {
        while let first = waiting.first, first.deadline <= loop.now {
            waiting.removeFirst()
            first.stream.giveUp()
        }
        if let first = waiting.first { timer?.schedule(at: first.deadline) }
    }
}
