import HTTP2
import Reactor

/// A client's and a server's session that exchange their bytes in memory.
final class MemoryPeers {
    let client: HTTP2Session
    let server: HTTP2Session
    private let spares = SpareBuffers()
    /// Bytes of each delivery.
    private let cut: Int
    private(set) var clientsEvents: [String] = []
    private(set) var serversEvents: [String] = []
    /// Whether a side consumes the bodies that it receives.
    var clientConsumes = true
    var serverConsumes = true
    /// Moment of all calls.
    var now = LoopTime(nanoseconds: 1)

    init(
        cut: Int = .max, client: HTTP2Settings = HTTP2Settings(), server: HTTP2Settings = HTTP2Settings()
    ) throws {
        self.cut = cut
        self.client = try HTTP2Session(.client, client, spares: spares, at: now)
        self.server = try HTTP2Session(.server, server, spares: spares, at: now)
    }

    /// Exchanges bytes until both sides are silent.
    func exchange() throws {
        var moved = true
        while moved {
            moved = try deliver(from: client, to: server, server: true)
            moved = try deliver(from: server, to: client, server: false) || moved
        }
    }

    private func deliver(from sender: HTTP2Session, to receiver: HTTP2Session, server: Bool) throws -> Bool {
        var bytes = ByteBuffer()
        try sender.fill(&bytes, limit: 1 << 20)
        take(from: sender, [], server: !server)
        let sent = bytes.count
        while !bytes.isEmpty {
            let count = min(cut, bytes.count)
            let piece = copied(bytes.bytes.extracting(first: count))
            bytes.consume(count)
            var rest = piece
            repeat {
                let count = try receiver.receive(rest.span, at: now)
                take(from: receiver, rest, server: server)
                rest.removeFirst(count)
            } while !rest.isEmpty || receiver.load.isPaused
        }
        return sent > 0
    }

    private func take(from session: HTTP2Session, _ bytes: [UInt8], server: Bool) {
        while let event = session.next() {
            let seen = line(event, session, bytes)
            if server { serversEvents.append(seen) } else { clientsEvents.append(seen) }
            if case .data(let stream, let range) = event, server ? serverConsumes : clientConsumes {
                session.consume(stream, range.count)
            }
        }
    }

    /// Takes the events so far.
    func serverSaw() -> [String] {
        defer { serversEvents = [] }
        return joined(serversEvents)
    }

    func clientSaw() -> [String] {
        defer { clientsEvents = [] }
        return joined(clientsEvents)
    }

    /// The events, with each stream's neighbouring pieces of a body in one.
    private func joined(_ events: [String]) -> [String] {
        events.reduce(into: []) { list, event in
            let words = event.split(separator: " ", maxSplits: 2, omittingEmptySubsequences: false)
            if words.count == 3, words[1] == "data", let last = list.last, last.hasPrefix("\(words[0]) data ") {
                list[list.count - 1] = last + words[2]
            } else if event != "settings" {
                list.append(event)
            }
        }
    }
}

/// An event as a line: its stream, its name, and its bytes.
func line(_ event: HTTP2Event, _ session: HTTP2Session, _ input: [UInt8]) -> String {
    func fields(_ block: HTTP2Block) -> String {
        var text = block.isTooLarge ? " too large" : ""
        session.received.forEach(block.fields) { name, value in
            text += " \(HTTP2Tests.text(name))=\(HTTP2Tests.text(value))"
        }
        return text
    }
    switch event {
    case .head(let stream, let block): return "\(stream) head\(fields(block))"
    case .interim(let stream, let block): return "\(stream) interim\(fields(block))"
    case .trailers(let stream, let block): return "\(stream) trailers\(fields(block))"
    case .data(let stream, let range): return "\(stream) data \(String(decoding: input[range], as: UTF8.self))"
    case .ended(let stream): return "\(stream) ended"
    case .room(let stream): return "\(stream) room"
    case .sent(let stream): return "\(stream) sent"
    case .closed(let stream, let end):
        let ending = end.hasEnded ? "whole" : end.isUnprocessed ? "unprocessed" : "cut"
        return "\(stream) closed \(end.code.rawValue) \(ending)"
    case .goAway(let last, let code): return "goAway \(last) \(code.rawValue)"
    case .settings: return "settings"
    case .pong(let value): return "pong \(value)"
    }
}

func copied(_ bytes: Span<UInt8>) -> [UInt8] { bytes.indices.map { bytes[$0] } }

func text(_ bytes: Span<UInt8>) -> String { String(decoding: copied(bytes), as: UTF8.self) }

extension HTTP2FieldList {
    /// Names and values alternate.
    init(_ words: String...) {
        self.init()
        for index in stride(from: 0, to: words.count - 1, by: 2) {
            append(Array(words[index].utf8).span, Array(words[index + 1].utf8).span)
        }
    }

    static var get: HTTP2FieldList {
        HTTP2FieldList(":method", "GET", ":scheme", "http", ":path", "/", ":authority", "api.test")
    }

    static var post: HTTP2FieldList {
        HTTP2FieldList(":method", "POST", ":scheme", "http", ":path", "/", ":authority", "api.test")
    }
}
