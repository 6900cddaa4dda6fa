import HTTPMessage
import Reactor

/// A whole request, for `async` handlers.
public struct ServerRequest: Sendable {
    /// Case-sensitive, as received.
    public let method: String
    /// The target up to the query, percent-encoded as received; begins with `/`, or is `*`.
    public let path: String
    /// The target behind the first `?`; `nil` without one.
    public let query: String?
    /// The requested authority: of an absolute target, else the Host field (RFC 9112, section 3.3). Empty for HTTP/1.0
    /// requests without one.
    public let authority: String
    /// Names as received.
    public let fields: [(name: String, value: String)]
    /// Empty where the server only counts bodies.
    public var body: [UInt8] = []
    /// Bytes of content.
    public var bodyLength = 0
    public let listener: Int
    /// The process at the other end of a Unix socket.
    public let peer: PeerCredentials?
    /// The client's address over TCP.
    public let peerAddress: SocketAddress?
    /// The local address; for a wildcard listener, the address that was dialled.
    public let localAddress: SocketAddress?

    /// The values of every field of this name, in any case, in order.
    public func values(_ name: String) -> [String] {
        let lowercased = name.lowercased()
        return fields.compactMap { $0.name.lowercased() == lowercased ? $0.value : nil }
    }

    /// The value of the only field of this name; `nil` when there is none, or more than one.
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
    private init(_ head: RequestHead, _ bytes: Span<UInt8>, _ source: ClientSource) throws(MessageError) {
        var asked = head.host
        let pathAndQuery: ByteRange
        switch try RequestTarget(parsing: bytes, head: head) {
        case .origin(let range): pathAndQuery = range
        case .absolute(_, let named, let range):
            asked = named
            pathAndQuery = range
        case .asterisk: pathAndQuery = head.target
        case .authority: throw MessageError(status: 501, detail: "This is no proxy: CONNECT leads nowhere.")
        }
        var target = pathAndQuery.string(in: bytes)
        if target.first != "/", target != "*" { target = "/" + target }
        let question = target.utf8.firstIndex(of: UInt8(ascii: "?"))
        path = question.map { String(target[..<$0]) } ?? target
        query = question.map { String(target[target.index(after: $0)...]) }
        method = head.method.string(in: bytes)
        authority = asked.string(in: bytes)
        fields = head.fields.map { ($0.name.string(in: bytes), $0.value.string(in: bytes)) }
        listener = source.listener
        peer = source.peer
        peerAddress = source.address
        localAddress = source.localAddress
    }
}
