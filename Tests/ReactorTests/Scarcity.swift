import Glibc
import Reactor
import TestSupport

/// An acceptor on a loop that has run out of descriptors. Its thread, and the loop's that it starts, have a descriptor
/// table of their own (unshare(2)), so that the rest of the process keeps its own.
final class Scarcity: Sendable {
    let ports = Recorder<UInt16>()
    let failures = Recorder<SystemError>()
    let accepted = Recorder<Int32>()
    let relief = Gate()

    /// To be run on a separate thread. Returns when a connection has been accepted.
    func run() throws {
        guard unshare(0x400) == 0, close_range(3, .max, 0) == 0 else { throw TestFailure("unshare(CLONE_FILES)") }
        let loop = try EventLoop.start(name: "scarce")
        defer { loop.stop() }
        let listener = try ListeningSocket.open(
            SocketAddress(.ipv4(address: 0x7f00_0001, port: 0)), sharesPort: false)
        let (failures, accepted) = (failures, accepted)
        loop.execute {
            let acceptor = try? Acceptor(
                listener, on: loop, accepted: { accepted.append($0.descriptor) }, failed: { failures.append($0) })
            if acceptor == nil { failures.append(SystemError("register")) }
        }
        var hoard: [Int32] = []
        while case let descriptor = dup(0), descriptor >= 0 { hoard.append(descriptor) }
        ports.append(listener.address.port)
        relief.wait()
        for descriptor in hoard { close(descriptor) }
        for _ in 0..<2000 where accepted.all.isEmpty { usleep(5000) }
    }
}

// The C library has them; Swift's module of it does not.
@_silgen_name("unshare") private func unshare(_ flags: Int32) -> Int32
@_silgen_name("close_range") private func close_range(_ first: UInt32, _ last: UInt32, _ flags: Int32) -> Int32
