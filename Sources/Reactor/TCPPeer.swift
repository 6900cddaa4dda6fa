import CLinux
import Glibc

/// The other end of a TCP connection, which may have gone without a word: its machine has stopped, or a NAT or balancer in
/// between has forgotten the connection. tcp(7). No effect on other sockets.
public struct TCPPeer {
    private let descriptor: Int32
    /// Seconds of silence before the kernel probes the peer, and between two probes.
    private static let silence: Int32 = 15

    public init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Makes the kernel probe a silent peer. Reads and writes fail after four probes without an answer. The probes also
    /// keep the connection in the memory of those in between. Connections inherit this from their listener.
    ///
    /// TCP_USER_TIMEOUT would find a peer that has gone while bytes are under way, too. It would also end the connection to
    /// a peer that is there and reads nothing for a time: Linux does not count the answers to probes of a full window.
    public func probe() {
        set(TCP_KEEPIDLE, Self.silence)
        set(TCP_KEEPINTVL, Self.silence)
        set(TCP_KEEPCNT, 4)
        _ = setOption(SO_KEEPALIVE, to: 1 as Int32, on: descriptor)
    }

    public enum Reaction {
        /// All sent bytes are acknowledged, or some of them since the given time.
        case heard
        /// The kernel has not sent the bytes often enough to know.
        case unknown
        /// Nothing came since the given time, although the kernel has sent the bytes three times.
        case none
    }

    /// Returns the reaction to bytes that were sent this long ago (TCP_INFO). An acknowledgement of earlier bytes may have
    /// come some milliseconds later. A full window is acknowledged, too.
    public func reaction(after time: Duration) -> Reaction {
        var info = tcp_info()
        var length = socklen_t(MemoryLayout<tcp_info>.size)
        guard unsafe getsockopt(descriptor, Int32(IPPROTO_TCP), TCP_INFO, &info, &length) == 0, info.tcpi_unacked > 0,
            Int(info.tcpi_last_ack_recv) + 20 >= time.wholeMilliseconds
        else { return .heard }
        return info.tcpi_retransmits >= 2 ? .none : .unknown
    }

    private func set(_ option: Int32, _ value: Int32) {
        _ = setOption(option, of: Int32(IPPROTO_TCP), to: value, on: descriptor)
    }
}
