import CLibssl
import Cryptography
import Dispatch
import Reactor
import TLSServer

private let loop = try! EventLoop.start(name: "fuzz")
private let context = try! makeContext()

/// A self-signed certificate for a new key.
private func makeContext() throws -> TLSServerContext {
    let key = try SigningKey.generate()
    let certificate = X509_new()
    X509_gmtime_adj(X509_getm_notBefore(certificate), 0)
    X509_gmtime_adj(X509_getm_notAfter(certificate), 86400)
    key.withUnsafeKey { key in
        X509_set_pubkey(certificate, key)
        X509_sign(certificate, key, EVP_sha256())
    }
    var bytes = [UInt8](repeating: 0, count: Int(i2d_X509(certificate, nil)))
    bytes.withUnsafeMutableBufferPointer { bytes in
        var position = bytes.baseAddress
        i2d_X509(certificate, &position)
    }
    return try TLSServerContext(certificates: [bytes], key: key, session: [])
}

/// A client that sends `input` and leaves, and the server's reader. Loop's thread only.
private final class Visit: ReadinessHandler, @unchecked Sendable {
    private let carrier: MemoryStream
    private var stream: TLSServerStream!
    private(set) var ends: [HandshakeEnd] = []
    private var error: SystemError?

    init(room: Int) { carrier = MemoryStream(room: room) }

    func begin(_ input: [UInt8], _ pieces: [Int]) {
        stream = try! TLSServerStream(
            on: carrier, server: TLSServerLoop(on: loop), choose: { ContextChoice($0 == "none.test" ? nil : context) },
            report: { [unowned self] in ends.append($0) })
        try! stream.register(self)
        var index = 0
        for end in pieces {
            carrier.deliver(input[index..<end])
            carrier.giveRoom()
            index = end
        }
        carrier.end()
    }

    func ready(_ readiness: Readiness) {
        var buffer = ByteBuffer()
        switch stream.read(into: &buffer, limit: 100) {
        case .bytes, .endOfStream: fatalError("broken: no bytes and no orderly end come without keys")
        case .wouldBlock: break
        case .failed(let error): self.error = error
        }
    }

    func finish() {
        require(ends.count == 1, "a handshake has one end")
        if case .done = ends[0] { fatalError("broken: no handshake is done without keys") }
        require(error != nil, "the reader is told")
        stream.close()
        require(carrier.isClosed, "the carrier is closed")
        stream = nil
    }
}

private func onLoop(_ body: @escaping @Sendable () -> Void) {
    let done = DispatchSemaphore(value: 0)
    loop.execute {
        body()
        done.signal()
    }
    done.wait()
}

private func end(_ input: [UInt8], _ pieces: [Int], room: Int) -> HandshakeEnd {
    let visit = Visit(room: room)
    onLoop { visit.begin(input, pieces) }
    // The reader is told in the next turn.
    onLoop { visit.finish() }
    return visit.ends[0]
}

/// The first byte is the size of the server's writes, 0 for any; the others come from the client.
func check(_ input: [UInt8]) {
    guard let first = input.first else { return }
    let bytes = Array(input.dropFirst())
    let whole = end(bytes, [bytes.count], room: .max)
    require(
        end(bytes, cuts(bytes), room: first == 0 ? .max : Int(first)) == whole, "split feeding ends as whole feeding")
}
