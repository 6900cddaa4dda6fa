import CLibssl
import Reactor

/// The encrypted side of a connection: libssl's BIO on a byte stream (BIO_meth_new(3)). It buffers bytes that the
/// stream does not take yet, so a write of libssl never blocks with half a record. Loop's thread only.
final class TLSWire {
    /// Limit of bytes in one read.
    private static let batch = SpareBuffers.size
    /// Limit of unsent bytes. It cuts off a client that makes libssl answer and does not read the answers.
    private static let maxWaiting = 256 * 1024

    let carrier: any ByteStream
    private let spares: SpareBuffers
    private var incoming: ByteBuffer
    private var outgoing = ByteBuffer()
    private var canRead = true
    private var canWrite = true
    /// Whether the client's end was announced. No edge follows, so reads go on even after a short read.
    private(set) var isEnding: Bool
    /// The carrier's end or failure.
    private(set) var end: Transferred?
    /// Whether libssl gets no more bytes.
    var isStopped = false
    /// Whether the owner wants the connection reset.
    var isCut = false
    /// Whether the connection ends without close_notify.
    var endsAsCut = false

    /// - Parameter received: the client's first bytes, already read from the carrier.
    init(_ carrier: any ByteStream, received: consuming ByteBuffer, isEnding: Bool, spares: SpareBuffers) {
        self.carrier = carrier
        self.spares = spares
        self.isEnding = isEnding
        incoming = received
    }

    /// Number of bytes that the carrier has not taken yet.
    var unsent: Int { outgoing.count }

    /// Whether one more record fits into a spare buffer.
    var hasRoom: Bool { outgoing.count <= SpareBuffers.size - Int(SSL3_RT_MAX_PACKET_SIZE) }

    func note(_ readiness: Readiness) {
        if !readiness.isDisjoint(with: [.readable, .peerClosed, .failed]) { canRead = true }
        if !readiness.isDisjoint(with: [.writable, .failed]) { canWrite = true }
        if !readiness.isDisjoint(with: [.peerClosed, .failed]) { isEnding = true }
    }

    /// Writes the waiting bytes to the carrier. Returns the memory of empty buffers to the spares.
    func flush() {
        while canWrite, !outgoing.isEmpty {
            switch carrier.write(from: &outgoing) {
            // After a short write, an edge reports new room.
            case .bytes: canWrite = outgoing.isEmpty
            case .wouldBlock: canWrite = false
            case .endOfStream: fail(.endOfStream)
            case .failed(let error): fail(.failed(error))
            }
        }
        if outgoing.isEmpty { outgoing.giveBack(to: spares) }
        if incoming.isEmpty { incoming.giveBack(to: spares) }
    }

    private func fail(_ end: Transferred) {
        self.end = end
        outgoing.removeAll()
    }

    // MARK: For libssl

    /// - Returns: the number of bytes copied; `nil` if none are available.
    private func read(into room: UnsafeMutableRawBufferPointer) -> Int? {
        guard !isStopped else { return nil }
        if incoming.isEmpty { fill() }
        let count = min(room.count, incoming.count)
        guard count > 0 else { return nil }
        incoming.withBytes { bytes in
            unsafe bytes.extracting(first: count).withUnsafeBytes { unsafe room.copyMemory(from: $0) }
        }
        incoming.consume(count)
        return count
    }

    private func fill() {
        guard canRead, end == nil else { return }
        incoming.borrow(from: spares)
        switch carrier.read(into: &incoming, limit: Self.batch) {
        // After a short read, an edge reports the next byte.
        case .bytes(let count): canRead = count == Self.batch || isEnding
        case .wouldBlock: canRead = false
        case .endOfStream: end = .endOfStream
        case .failed(let error): fail(.failed(error))
        }
    }

    private func write(_ bytes: UnsafeRawBufferPointer) -> Bool {
        guard outgoing.count <= Self.maxWaiting else { return false }
        if case .failed = end { return false }
        outgoing.borrow(from: spares, makes: false)
        outgoing.append(unsafe Span(_unsafeBytes: bytes))
        return true
    }

    /// Makes a BIO on this object. This object must outlive the BIO.
    func makeBIO() -> OpaquePointer? {
        guard let method = unsafe Self.method, let bio = unsafe BIO_new(method) else { return nil }
        unsafe BIO_set_data(bio, Unmanaged.passUnretained(self).toOpaque())
        unsafe BIO_set_init(bio, 1)
        return unsafe bio
    }

    private static func of(_ bio: OpaquePointer?) -> TLSWire? {
        unsafe BIO_get_data(bio).map { unsafe Unmanaged<TLSWire>.fromOpaque($0).takeUnretainedValue() }
    }

    /// BIO_METHOD of all connections, never freed.
    nonisolated(unsafe) private static let method: OpaquePointer? = {
        guard let method = unsafe BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "byte stream") else {
            return nil
        }
        unsafe BIO_meth_set_read(method) { bio, room, count in
            unsafe heimdallr_clear_retry(bio)
            guard let wire = unsafe TLSWire.of(bio) else { return -1 }
            if let count = unsafe wire.read(into: .init(start: room, count: max(0, Int(count)))) { return Int32(count) }
            if wire.end == nil, !wire.isStopped { unsafe heimdallr_retry_read(bio) }
            return -1
        }
        unsafe BIO_meth_set_write(method) { bio, bytes, count in
            unsafe heimdallr_clear_retry(bio)
            guard let wire = unsafe TLSWire.of(bio) else { return -1 }
            return unsafe wire.write(.init(start: bytes, count: max(0, Int(count)))) ? count : -1
        }
        unsafe BIO_meth_set_ctrl(method) { _, command, _, _ in command == BIO_CTRL_FLUSH ? 1 : 0 }
        return unsafe method
    }()
}
