import Reactor

/// A client in memory. The test delivers its bytes and chooses where calls fail. Readiness is edge-triggered, like a
/// socket's. Loop's thread only.
public final class MemoryStream: ByteStream {
    /// Number of the `read` or `write` call that fails, from 1; `nil`: none.
    private let failing: Int?
    /// Limit in bytes of one write, after which the stream is full until `giveRoom`.
    private let room: Int
    private var calls = 0
    private var incoming: [UInt8] = []
    private var hasEnded = false
    private var isFull = false
    private weak var handler: (any ReadinessHandler)?
    public private(set) var written: [UInt8] = []
    public private(set) var isClosed = false
    /// Whether the server's side was shut down in order.
    public private(set) var isShutDown = false
    /// Whether `close` resets the connection.
    public private(set) var isCut = false

    public init(failing: Int? = nil, room: Int = .max) {
        self.failing = failing
        self.room = room
    }

    // MARK: For the test

    public func deliver(_ bytes: some Sequence<UInt8>) {
        incoming += bytes
        tell(.readable)
    }

    public func end() {
        hasEnded = true
        tell([.readable, .peerClosed])
    }

    /// Takes no bytes until `giveRoom`.
    public func takeRoom() { isFull = true }

    public func giveRoom() {
        isFull = false
        tell(.writable)
    }

    /// Reports readiness, even if nothing has changed.
    public func tell(_ readiness: Readiness) { if !isClosed { handler?.ready(readiness) } }

    // MARK: ByteStream

    public func register(_ handler: any ReadinessHandler) throws(SystemError) { self.handler = handler }

    private func fault(_ call: String) -> Transferred? {
        calls += 1
        return isClosed || calls == failing ? .failed(SystemError(call, code: 104)) : nil
    }

    public func read(into buffer: inout ByteBuffer, limit: Int) -> Transferred {
        if let fault = fault("recv") { return fault }
        guard !incoming.isEmpty else { return hasEnded ? .endOfStream : .wouldBlock }
        let count = min(limit, incoming.count)
        buffer.append(incoming.span.extracting(first: count))
        incoming.removeFirst(count)
        return .bytes(count)
    }

    public func write(from buffer: inout ByteBuffer) -> Transferred {
        let nothing: [UInt8] = []
        return write(from: &buffer, then: nothing.span)
    }

    public func write(from buffer: inout ByteBuffer, then body: Span<UInt8>) -> Transferred {
        if let fault = fault("send") { return fault }
        guard !isFull else { return .wouldBlock }
        let first = min(room, buffer.count)
        let second = min(room - first, body.count)
        isFull = first + second == room
        for index in 0..<first { written.append(buffer.bytes[index]) }
        for index in 0..<second { written.append(body[index]) }
        buffer.consume(first)
        return .bytes(first + second)
    }

    public var unacknowledged: Int { 0 }
    public func shutdownWriting() { isShutDown = true }
    public func resetOnClose() { isCut = true }
    public func close() { isClosed = true }
    public var peerCredentials: PeerCredentials? { nil }
    public var peerAddress: SocketAddress? { nil }
    public var localAddress: SocketAddress? { nil }
}
