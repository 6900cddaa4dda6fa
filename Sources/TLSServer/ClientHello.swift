/// The first message of a TLS client (RFC 8446, section 4.1.2), read without libssl and without consuming the bytes.
/// By its server name, the proxy decides whether to intercept the connection.
public enum ClientHello: Sendable, Equatable {
    /// The message is incomplete.
    case partial
    /// - Parameter serverName: in lower case (RFC 6066, section 3); `nil` if the message names no host.
    case whole(serverName: String?)
    /// The bytes are no ClientHello, or a too long one.
    case malformed

    /// Limit of the message's bytes on the wire: the same as libssl's.
    public static let maxBytes = 16 * 1024

    private static let handshake: UInt8 = 0x16
    private static let serverName = 0

    /// - Parameter bytes: the client's bytes so far. The message may span several records (RFC 8446, section 5.1).
    public init(parsing bytes: Span<UInt8>) {
        var message: [UInt8] = []
        var index = 0
        while index < bytes.count {
            guard bytes[index] == Self.handshake else {
                self = .malformed
                return
            }
            guard bytes.count - index > 5 else { break }
            let length = Int(bytes[index + 3]) << 8 | Int(bytes[index + 4])
            guard bytes[index + 1] == 3, length > 0 else {
                self = .malformed
                return
            }
            index += 5
            let end = min(bytes.count, index + length)
            while index < end {
                message.append(bytes[index])
                index += 1
            }
            if let hello = Self.read(message) {
                self = hello
                return
            }
        }
        self = bytes.count < Self.maxBytes ? .partial : .malformed
    }

    /// - Returns: `nil` for an incomplete message.
    private static func read(_ message: [UInt8]) -> ClientHello? {
        var reader = MessageReader(message)
        guard let type = reader.integer(1) else { return nil }
        guard type == 1 else { return .malformed }
        guard let length = reader.integer(3) else { return nil }
        guard length <= maxBytes else { return .malformed }
        guard let body = reader.bytes(length) else { return nil }
        return read(body) ?? .malformed
    }

    /// - Returns: `nil` for a malformed message.
    private static func read(_ body: MessageReader) -> ClientHello? {
        var body = body
        // Version and random, session, cipher suites, compression methods.
        guard body.integer(2) != nil, body.bytes(32) != nil, body.vector(1) != nil, body.vector(2) != nil,
            body.vector(1) != nil
        else { return nil }
        if body.isAtEnd { return .whole(serverName: nil) }
        guard var extensions = body.vector(2), body.isAtEnd else { return nil }
        var name: String?
        while !extensions.isAtEnd {
            guard let type = extensions.integer(2), let content = extensions.vector(2) else { return nil }
            guard type == serverName else { continue }
            guard name == nil, let found = ServerName.parse(content) else { return nil }
            name = found
        }
        return .whole(serverName: name)
    }
}
