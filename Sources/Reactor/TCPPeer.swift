import CLinux
import Glibc

/// The other end of a TCP connection, which may have gone without a word: its machine has stopped, or a NAT or balancer in
/// between has forgotten the connection. tcp(7). No effect on other sockets.
public struct TCPPeer {
    private let descriptor: Int32
    /// Seconds of silence before the kernel probes the peer, and between two probes.
    private static let silence: Int32 = 15

    public init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Makes the kernel probe a silent peer. Reads and writes fail after nine probes without an answer. The probes also
    /// keep the connection in the memory of those in between. Connections inherit this from their listener.
    public func probe() {
        set(TCP_KEEPIDLE, Self.silence)
        set(TCP_KEEPINTVL, Self.silence)
        _ = setOption(SO_KEEPALIVE, to: 1 as Int32, on: descriptor)
    }

    /// Ends the connection when sent bytes or probes stay without an acknowledgement for this time; zero sets no limit. A
    /// peer that reads nothing counts as silent, too, once its window is full.
    public func limitSilence(_ limit: Duration) { set(TCP_USER_TIMEOUT, Int32(limit.wholeMilliseconds)) }

    private func set(_ option: Int32, _ value: Int32) {
        _ = setOption(option, of: Int32(IPPROTO_TCP), to: value, on: descriptor)
    }
}
