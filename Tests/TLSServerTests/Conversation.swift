import Reactor
import TLSServer
import TestSupport

/// A client and a server in memory, on one loop. Loop's thread only.
final class Conversation {
    let client: MemoryClient
    let carrier: MemoryStream
    let stream: TLSServerStream
    let peer: EchoPeer
    private let heard = Heard()
    var ends: [HandshakeEnd] { heard.ends }
    private var taken = 0
    /// Position in the client's bytes where its deliveries are cut; `nil`: nowhere.
    var cut: Int?
    /// Bytes of one delivery at most.
    var most = Int.max
    private(set) var delivered = 0

    private final class Heard { var ends: [HandshakeEnd] = [] }

    init(
        _ client: MemoryClient, _ carrier: MemoryStream = MemoryStream(), on loop: EventLoop, limit: Int = 65536,
        patience: Duration = .seconds(60), server: TLSServerLoop? = nil, received: [UInt8] = [], isEnding: Bool = false,
        contexts: @escaping (String?) -> TLSServerContext? = { _ in nil },
        choose: ((String?) -> ContextChoice)? = nil
    ) throws {
        self.client = client
        self.carrier = carrier
        var first = ByteBuffer()
        first.append(received)
        stream = try TLSServerStream(
            on: carrier, received: first, isEnding: isEnding,
            server: server ?? TLSServerLoop(on: loop, patience: patience),
            choose: choose ?? { ContextChoice(contexts($0)) },
            report: { [heard] in heard.ends.append($0) })
        peer = EchoPeer(stream, limit: limit)
        try stream.register(peer)
        client.goOn()
    }

    /// Moves the bytes of both sides once.
    func step() {
        deliver(client.take())
        carrier.giveRoom()
        pass()
        client.goOn()
    }

    func deliver(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            var count = min(most, rest.count)
            if let cut, cut > delivered { count = min(count, cut - delivered) }
            delivered += count
            carrier.deliver(rest.prefix(count))
            rest = rest.dropFirst(count)
        }
    }

    private func pass() {
        let new = Array(carrier.written[taken...])
        taken += new.count
        client.deliver(new)
    }
}

/// Sends back what it reads, and believes no more than what the protocol promises: it reads and writes again after an edge
/// only.
final class EchoPeer: ReadinessHandler {
    private let stream: TLSServerStream
    private let limit: Int
    private var canRead = false
    private var canWrite = true
    private var isEnding = false
    private var input = ByteBuffer()
    private var output = ByteBuffer()
    private(set) var received: [UInt8] = []
    private(set) var largest = 0
    private(set) var end: Transferred?
    /// Leaves the stream open when the client has ended.
    var stays = false
    /// Does not read.
    var cannotWrite = false

    init(_ stream: TLSServerStream, limit: Int) {
        self.stream = stream
        self.limit = limit
    }

    func ready(_ readiness: Readiness) {
        if !readiness.isDisjoint(with: [.readable, .peerClosed, .failed]) { canRead = true }
        if !readiness.isDisjoint(with: [.writable, .failed]) { canWrite = true }
        if readiness.contains(.peerClosed) { isEnding = true }
        if !cannotWrite { work() }
    }

    func write(_ bytes: [UInt8]) {
        output.append(bytes)
        flush()
    }

    func work() {
        while canRead, end == nil {
            let step = stream.read(into: &input, limit: limit)
            switch step {
            case .bytes(let count):
                largest = max(largest, count)
                canRead = count == limit || isEnding
                for index in 0..<count { received.append(input.bytes[index]) }
                output.append(first: count, of: input)
                input.consume(count)
            case .wouldBlock: canRead = false
            case .endOfStream, .failed: end = step
            }
        }
        flush()
        switch end {
        case .endOfStream: if output.isEmpty, !stays { stream.close() }
        case .failed: stream.close()
        default: break
        }
    }

    private func flush() {
        while canWrite, !output.isEmpty {
            switch stream.write(from: &output) {
            case .bytes: canWrite = output.isEmpty
            case .wouldBlock: canWrite = false
            case .endOfStream, .failed:
                output.removeAll()
                if end == nil { end = .failed(SystemError("write", code: 0)) }
            }
        }
    }
}
