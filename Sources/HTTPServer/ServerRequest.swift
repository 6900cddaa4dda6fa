import HTTPMessage
import Reactor

/// A complete request, for `async` handlers.
public struct ServerRequest: Sendable {
    /// Method as received. Its case matters.
    public let method: String
    /// Path of the target, percent-encoded as received: begins with `/`, or is `*`.
    public package(set) var path: String
    /// Query of the target, after the first `?`; `nil` without a `?`.
    public let query: String?
    /// Requested authority, from an absolute target or else from the Host field (RFC 9112, section 3.3). Empty in an
    /// HTTP/1.0 request that names no host.
    public let authority: String
    /// Names as received.
    public let fields: [(name: String, value: String)]
    /// Content of the body; empty if the server only counts it.
    public var body: [UInt8] = []
    /// Length of the content in bytes.
    public var bodyLength = 0
    /// The process at the other end of a Unix socket.
    public let peer: PeerCredentials?
    /// The program's address over TCP.
    public let peerAddress: SocketAddress?
    /// Local address of the connection. For a wildcard listener, the address that the program dialled.
    public let localAddress: SocketAddress?

    /// Returns the values of all fields with this name, in order. The name's case does not matter.
    public func values(_ name: String) -> [String] {
        let lowercased = name.lowercased()
        return fields.compactMap { $0.name.lowercased() == lowercased ? $0.value : nil }
    }

    /// Returns the value if exactly one field has this name, otherwise `nil`.
    public func value(_ name: String) -> String? {
        let values = values(name)
        return values.count == 1 ? values[0] : nil
    }

    init(_ connection: ServerConnection) throws(MessageError) {
        self = try connection.request.with { head, bytes throws(MessageError) in
            try ServerRequest(head, bytes, connection.source)
        }
    }

    /// - Throws: for a target that only a proxy can answer.
    private init(_ head: RequestHead, _ bytes: Span<UInt8>, _ source: ProgramSource) throws(MessageError) {
        var requested = head.host
        let pathAndQuery: ByteRange
        switch try RequestTarget(parsing: bytes, head: head) {
        case .origin(let range): pathAndQuery = range
        case .absolute(_, let named, let range):
            requested = named
            pathAndQuery = range
        case .asterisk: pathAndQuery = head.target
        case .authority: throw MessageError(status: 501, detail: "This server is not a proxy and refuses CONNECT.")
        }
        var target = pathAndQuery.string(in: bytes)
        if target.first != "/", target != "*" { target = "/" + target }
        let questionMark = target.utf8.firstIndex(of: UInt8(ascii: "?"))
        path = questionMark.map { String(target[..<$0]) } ?? target
        query = questionMark.map { String(target[target.index(after: $0)...]) }
        method = head.method.string(in: bytes)
        authority = requested.string(in: bytes)
        fields = head.fields.map { ($0.name.string(in: bytes), $0.value.string(in: bytes)) }
        peer = source.peer
        peerAddress = source.address
        localAddress = source.localAddress
    }
}
