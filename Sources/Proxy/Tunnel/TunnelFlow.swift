import Reactor

/// One direction of a tunnel. It reads only when all earlier bytes are written. So it holds at most one piece, and no
/// memory as long as the target accepts all bytes at once.
final class TunnelFlow {
    enum Step {
        /// The flow waits for the source or the target, or is finished.
        case idle
        /// The flow has used its share of this turn, and has more bytes to move.
        case more
        case failed(TunnelSide)
    }

    static let piece = 64 * 1024
    private static let piecesPerTurn = 16

    private let source: TunnelSide
    private let target: TunnelSide
    /// Bytes read but not yet written.
    private var waiting = ByteBuffer()
    /// Number of bytes from the source.
    private(set) var count: UInt64 = 0
    private var reported: UInt64 = 0
    /// Whether the source's end was passed on.
    private(set) var isDone = false
    var hasMoved = false

    init(from source: TunnelSide, to target: TunnelSide) {
        self.source = source
        self.target = target
    }

    /// Puts bytes in front of those to be read.
    /// - Parameter counts: whether the bytes came from the source.
    func begin(with bytes: Span<UInt8>, counts: Bool) {
        waiting.append(bytes)
        if counts { count += UInt64(bytes.count) }
    }

    func newBytes() -> UInt64 {
        defer { reported = count }
        return count - reported
    }

    /// - Parameter scratch: empty buffer for bytes that are written at once.
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
            guard pieces < Self.piecesPerTurn else { return .more }
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
