/// One header or trailer line, as received.
public struct Field: Sendable, Equatable, CustomStringConvertible {
    public var name: String
    public var value: String

    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }

    public var description: String { "\(name): \(value)" }
}

extension [Field] {
    /// All values of a name in order. The name's case does not matter.
    public func values(_ name: String) -> [String] {
        filter { $0.name.lowercased() == name.lowercased() }.map(\.value)
    }

    /// The value of a name: `nil` if absent, joined by `, ` if repeated.
    public func value(_ name: String) -> String? {
        let found = values(name)
        return found.isEmpty ? nil : found.joined(separator: ", ")
    }
}

/// The way in which a message marks the end of its body (RFC 9112, section 6).
public enum Framing: Sendable, Equatable {
    case none
    case length(Int)
    case chunked

    /// - Throws: `TestFailure` for framing that two readers could read differently.
    init(_ fields: [Field]) throws {
        let codings = fields.values("Transfer-Encoding")
        let lengths = fields.values("Content-Length")
        switch (codings.count, lengths.count) {
        case (0, 0): self = .none
        case (1, 0):
            guard codings[0].lowercased() == "chunked" else { throw TestFailure("Transfer-Encoding: \(codings[0])") }
            self = .chunked
        case (0, 1):
            guard !lengths[0].isEmpty, lengths[0].utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let count = Int(lengths[0])
            else { throw TestFailure("Content-Length: \(lengths[0])") }
            self = .length(count)
        default: throw TestFailure("ambiguous framing: \(fields)")
        }
    }
}

/// Reads HTTP/1 messages from a socket by the strict grammar of RFC 9112, for tests: every deviation throws.
struct MessageReader {
    let socket: Socket
    var buffered: [UInt8]
    var deadline: Deadline
    /// Receives every byte that arrives, before parsing.
    var record: ((ArraySlice<UInt8>) -> Void)?

    init(
        socket: Socket, buffered: [UInt8] = [], deadline: Deadline, record: ((ArraySlice<UInt8>) -> Void)? = nil
    ) {
        self.socket = socket
        self.buffered = buffered
        self.deadline = deadline
        self.record = record
    }

    /// Reads one more piece. Returns `false` at the end of the stream.
    mutating func more() throws -> Bool {
        let piece: [UInt8]
        do { piece = try socket.read(deadline: deadline) } catch Socket.Failure.timedOut {
            throw TestFailure("nothing more came in time; so far: \(shown(buffered))")
        }
        record?(piece[...])
        buffered.append(contentsOf: piece)
        return !piece.isEmpty
    }

    mutating func take(count: Int) throws -> [UInt8] {
        while buffered.count < count {
            guard try more() else { throw TestFailure("cut: \(buffered.count) of \(count) bytes came") }
        }
        defer { buffered.removeFirst(count) }
        return Array(buffered[..<count])
    }

    mutating func take(through mark: [UInt8]) throws -> [UInt8] {
        var searched = 0
        while true {
            if let end = buffered.firstIndex(of: mark, from: searched) { return try take(count: end + mark.count) }
            searched = max(0, buffered.count - mark.count + 1)
            guard try more() else {
                throw TestFailure("the stream ended before \(shown(mark)); so far: \(shown(buffered))")
            }
        }
    }

    mutating func takeToEnd() throws -> [UInt8] {
        while try more() {}
        defer { buffered = [] }
        return buffered
    }

    /// A line without its CRLF. A bare CR or LF throws.
    mutating func line() throws -> String {
        let bytes = try take(through: [13, 10]).dropLast(2)
        guard !bytes.contains(13), !bytes.contains(10), !bytes.contains(0) else {
            throw TestFailure("bare CR, LF or NUL in: \(shown(Array(bytes)))")
        }
        guard let line = String(validating: bytes, as: UTF8.self) ?? latin1(bytes) else {
            throw TestFailure("unreadable line")
        }
        return line
    }

    mutating func fields() throws -> [Field] {
        var fields: [Field] = []
        while true {
            let line = try line()
            if line.isEmpty { return fields }
            guard let colon = line.firstIndex(of: ":"), colon > line.startIndex,
                line[..<colon].utf8.allSatisfy(isTokenByte)
            else { throw TestFailure("not a field line: \(line)") }
            let value = line[line.index(after: colon)...]
            let trimmed = value.drop { $0 == " " || $0 == "\t" }
            let end = trimmed.lastIndex { $0 != " " && $0 != "\t" }
            fields.append(
                Field(name: String(line[..<colon]), value: end.map { String(trimmed[...$0]) } ?? ""))
        }
    }

    mutating func chunked() throws -> (body: [UInt8], trailers: [Field]) {
        var body: [UInt8] = []
        while let size = try chunkSize() {
            body.append(contentsOf: try take(count: size))
            guard try take(count: 2) == [13, 10] else { throw TestFailure("a chunk without its CRLF") }
        }
        return (body, try fields())
    }

    /// The size of the next chunk, `nil` for the last one. Extensions throw, because none are expected.
    mutating func chunkSize() throws -> Int? {
        let line = try line()
        guard !line.isEmpty, line.count < 16, line.utf8.allSatisfy(isHexByte), let size = Int(line, radix: 16)
        else { throw TestFailure("not a chunk size: \(line)") }
        return size == 0 ? nil : size
    }

    private func latin1(_ bytes: some Sequence<UInt8>) -> String? {
        String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    }
}

private func isTokenByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x5A, 0x61...0x7A: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
    }
}

private func isHexByte(_ byte: UInt8) -> Bool {
    switch byte {
    case 0x30...0x39, 0x41...0x46, 0x61...0x66: true
    default: false
    }
}

/// Returns bytes for a failure's message, escaped and shortened.
func shown(_ bytes: [UInt8]) -> String {
    let text = String(decoding: bytes.prefix(600), as: UTF8.self).debugDescription
    return bytes.count > 600 ? "\(text)… (\(bytes.count) bytes)" : text
}

extension [UInt8] {
    fileprivate func firstIndex(of mark: [UInt8], from start: Int) -> Int? {
        guard let first = mark.first, count >= mark.count else { return nil }
        var index = start
        while let found = self[index...].firstIndex(of: first), found + mark.count <= count {
            if self[found..<(found + mark.count)].elementsEqual(mark) { return found }
            index = found + 1
        }
        return nil
    }
}
