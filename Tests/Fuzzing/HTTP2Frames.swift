import HTTP2
import Reactor

private let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + [0, 0, 0, 4, 0, 0, 0, 0, 0]
private let now = LoopTime(nanoseconds: 1)

/// A session and its events. Adjacent pieces of one body are merged into one event.
private final class Visit {
    private let session: HTTP2Session
    private let role: HTTP2Role
    private(set) var seen: [String] = []
    /// Ends of streams. A GOAWAY frame ends several, in any order.
    private(set) var ends: Set<String> = []
    /// Streams that have not ended: a client's own, a server's from their heads on.
    private var open = 0
    /// Whether no stream was open at or after a GOAWAY. libnghttp2 then reads the rest of the same piece, and no further one.
    private var isOver = false

    init(_ role: HTTP2Role) {
        self.role = role
        session = try! HTTP2Session(role, spares: SpareBuffers(), at: now)
        guard role == .client else { return }
        var fields = HTTP2FieldList()
        for (name, value) in [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "h")] {
            fields.append(Array(name.utf8).span, Array(value.utf8).span)
        }
        for _ in 0..<3 where (try? session.request(fields, hasBody: false)) != nil { open += 1 }
        send()
    }

    /// - Returns: `false` when the session has failed.
    func read(_ bytes: [UInt8]) -> Bool {
        var rest = bytes
        repeat {
            var count = 0
            do throws(HTTP2Error) { count = try session.receive(rest.span, at: now) } catch {
                take(rest)
                seen.append("\(error)")
                send()
                require(session.isFinished, "a failed session reads and writes no more")
                return false
            }
            take(rest)
            require(count == rest.count || session.load.isPaused, "all is read, unless the session pauses")
            rest.removeFirst(count)
        } while session.load.isPaused
        return true
    }

    func send() {
        var output = ByteBuffer()
        do throws(HTTP2Error) { try session.fill(&output, limit: 1 << 20) } catch { seen.append("\(error)") }
        take([])
    }

    private func take(_ bytes: [UInt8]) {
        while let event = session.next() {
            if isOver { continue }
            defer { isOver = open == 0 && seen.contains { $0.hasPrefix("goAway") } }
            switch event {
            case .data(let stream, let range):
                require(range.lowerBound >= 0 && range.upperBound <= bytes.count, "a body is a part of the input")
                let text = bytes[range].map { "\($0) " }.joined()
                if let last = seen.last, last.hasPrefix("data \(stream):") {
                    seen[seen.count - 1] = last + text
                } else {
                    seen.append("data \(stream): " + text)
                }
                session.consume(stream, range.count)
            case .head(_, let block), .interim(_, let block), .trailers(_, let block):
                if case .head = event, role == .server { open += 1 }
                var text = ""
                session.received.forEach(block.fields) { name, value in
                    for index in value.indices {
                        require(value[index] != 13 && value[index] != 10 && value[index] != 0, "no line end in a value")
                    }
                    text += "\(name.count):\(value.count) "
                }
                seen.append("fields \(block.endsStream) \(block.isTooLarge) \(text)")
            case .goAway where seen.contains { $0.hasPrefix("goAway") }: break
            case .closed:
                ends.insert("\(event)")
                open -= 1
            default: seen.append("\(event)")
            }
        }
    }
}

/// The first byte holds options. Bit 0 chooses a client's session. Bit 1 puts the client preface before a server's input.
func check(_ input: [UInt8]) {
    guard let options = input.first else { return }
    let role: HTTP2Role = options & 1 != 0 ? .client : .server
    let bytes = (options & 2 != 0 && role == .server ? preface : []) + input.dropFirst()
    let whole = Visit(role)
    if whole.read(bytes) { whole.send() }
    let split = Visit(role)
    var start = 0
    for end in cuts(bytes) where end > start {
        guard split.read(Array(bytes[start..<end])) else { break }
        start = end
    }
    if start == bytes.count { split.send() }
    require(whole.seen == split.seen && whole.ends == split.ends, "split feeding sees the same events")
}
