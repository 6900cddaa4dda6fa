import Reactor

/// One direction of a tunnel. It reads nothing before the last bytes are written. So it holds at most one piece, and no
/// memory while both ends keep up.
final class TunnelFlow {
    enum Step {
        /// Waits for one of its ends, or is finished.
        case idle
        /// Has used its share of this turn.
        case more
        case failed(TunnelSide)
    }

    static let piece = 64 * 1024
    private static let share = 16

    private let source: TunnelSide
    private let target: TunnelSide
    /// Bytes read but not yet written.
    private var waiting = ByteBuffer()
    /// Number of bytes from the source.
    private(set) var count: UInt64 = 0
    private var told: UInt64 = 0
    /// The source's end was passed on.
    private(set) var isDone = false
    var hasMoved = false

    init(from source: TunnelSide, to target: TunnelSide) {
        self.source = source
        self.target = target
    }

    /// Inserts bytes before the ones to be read.
    /// - Parameter counts: whether they came from the source.
    func begin(with bytes: Span<UInt8>, counts: Bool) {
        waiting.append(bytes)
        if counts { count += UInt64(bytes.count) }
    }

    func takeNews() -> UInt64 {
        defer { told = count }
        return count - told
    }

    /// - Parameter scratch: an empty buffer for bytes that pass straight through.
    func move(_ scratch: inout ByteBuffer) -> Step {
        var pieces = 0
        while !isDone {
            if !waiting.isEmpty {
                guard let written = target.write(from: &waiting) else { return .failed(target) }
                if written > 0 { hasMoved = true }
                guard waiting.isEmpty else { return .idle }
                waiting.release()
            }
            if source.hasEnded {
                target.stream.shutdownWriting()
                isDone = true
                hasMoved = true
                return .idle
            }
            guard source.canRead else { return .idle }
            guard pieces < Self.share else { return .more }
            pieces += 1
            guard let read = source.read(into: &scratch, limit: Self.piece) else { return .failed(source) }
            guard read > 0 else { continue }
            count += UInt64(read)
            hasMoved = true
            guard target.write(from: &scratch) != nil else { return .failed(target) }
            waiting.append(scratch.bytes)
            scratch.removeAll()
        }
        return .idle
    }
}
