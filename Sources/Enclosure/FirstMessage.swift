public import Reactor
import WireText

/// The first message of a process that its launcher did not start, read without a thread of its own. Loop's thread only.
public final class FirstMessage: ReadinessHandler {
    private let stream: StreamSocket
    private var input = ByteBuffer()
    private var timer: LoopTimer?
    private var ended: (([String]?) -> Void)?

    /// Time until the message is whole. A process sends it as soon as it has connected.
    private static let patience = Duration.seconds(10)
    /// Limit of the message's bytes. It has paths, and no environment.
    private static let limit = 1 << 20

    public init(_ stream: StreamSocket, on loop: EventLoop) {
        self.stream = stream
        timer = LoopTimer(on: loop) { [unowned self] in end() }
    }

    /// Begins to read.
    /// - Parameter ended: called once, with the words; with `nil` if there is no message. Descriptors that came are closed.
    public func begin(_ ended: @escaping ([String]?) -> Void) {
        self.ended = ended
        timer?.schedule(after: Self.patience)
        do throws(SystemError) { try stream.register(self) } catch { end() }
    }

    /// Ends the wait.
    public func end(_ words: [String]? = nil) {
        guard let ended else { return }
        self.ended = nil
        timer?.cancel()
        ended(words)
        stream.close()
    }

    public func ready(_ readiness: Readiness) {
        while ended != nil {
            var missing = EnclosureLink.headSize - input.count
            if missing <= 0 {
                let count = EnclosureLink.count(input.bytes)
                guard count <= Self.limit else { return end() }
                missing += count
            }
            guard missing > 0 else {
                return end(EnclosureLink.words(Array(copying: input.bytes).dropFirst(EnclosureLink.headSize)))
            }
            switch stream.read(into: &input, limit: missing) {
            case .bytes: continue
            case .wouldBlock: return
            case .endOfStream, .failed: return end()
            }
        }
    }
}
