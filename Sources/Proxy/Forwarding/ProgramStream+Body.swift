import HTTPServer
import WireText

extension ProgramStream {
    /// Returns the whole body if it has arrived; `nil` if it is longer, has not arrived, or its first bytes are gone.
    func wholeBody(upTo limit: Int) -> [UInt8]? {
        if progress.bodyTaken > 0, !progress.canRewind || !rewindBody() { return nil }
        var body: [UInt8] = []
        var bytes: InlineArray<4096, UInt8> = .init(repeating: 0)
        while body.count <= limit {
            var span = bytes.mutableSpan
            switch try? readBody(into: &span) {
            case .bytes(let count): body.append(contentsOf: [UInt8](copying: span.span.extracting(first: count)))
            case .end: return body
            case .wait, .cut, .gone, nil: return nil
            }
        }
        return nil
    }
}
