import Glibc
import Synchronization

/// The addresses of this machine's interfaces. A thread updates them when the kernel reports a change (rtnetlink(7)).
/// If the kernel refuses reports, the thread reads the addresses every second.
public final class InterfaceAddresses: Sendable {
    public static let shared = InterfaceAddresses()

    private let addresses: Mutex<Set<NumericAddress>>

    private init() {
        // Starts the watch before the first read, so that a change during the read is reported.
        let watch = Self.watch()
        addresses = Mutex(Self.read() ?? [])
        do throws(SystemError) {
            try startThread("addresses") { [self] in update(watch) }
        } catch {
            if watch >= 0 { close(watch) }
        }
    }

    public var current: Set<NumericAddress> { addresses.withLock { $0 } }

    public func contains(_ address: NumericAddress) -> Bool { addresses.withLock { $0.contains(address) } }

    private func update(_ watch: Int32) {
        var query = pollfd(fd: watch, events: Int16(POLLIN), revents: 0)
        var message = [UInt8](repeating: 0, count: 8192)
        while true {
            if watch < 0 {
                sleep(1)
            } else {
                // A lost kernel message delays an update by a minute at most.
                _ = unsafe poll(&query, 1, 60_000)
                // The messages are discarded, and may be lost (ENOBUFS), because all addresses are read below.
                while unsafe recv(watch, &message, message.count, Int32(MSG_DONTWAIT)) > 0 {}
            }
            if let read = InterfaceAddresses.read() { addresses.withLock { $0 = read } }
        }
    }

    /// Reads the addresses; `nil` on failure. getifaddrs(3).
    private static func read() -> Set<NumericAddress>? {
        var list: UnsafeMutablePointer<ifaddrs>?
        guard unsafe getifaddrs(&list) == 0 else { return nil }
        defer { unsafe freeifaddrs(list) }
        var addresses: Set<NumericAddress> = []
        var next = unsafe list
        while let entry = unsafe next {
            let address = unsafe SocketAddress(UnsafePointer(entry.pointee.ifa_addr))
            if let address = address.flatMap({ NumericAddress($0) }) { addresses.insert(address) }
            unsafe next = entry.pointee.ifa_next
        }
        return addresses
    }

    /// struct sockaddr_nl of netlink(7), which Swift's Glibc lacks.
    private struct NetlinkAddress {
        var family: UInt16
        var padding: UInt16 = 0
        var process: UInt32 = 0
        var groups: UInt32
    }

    /// Opens a socket that receives changes of addresses; -1 if the kernel refuses.
    private static func watch() -> Int32 {
        let descriptor = socket(AF_NETLINK, Int32(SOCK_RAW.rawValue) | Int32(bitPattern: SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return -1 }
        // RTMGRP_IPV4_IFADDR and RTMGRP_IPV6_IFADDR.
        var address = NetlinkAddress(family: UInt16(AF_NETLINK), groups: 0x10 | 0x100)
        if unsafe withKernelAddress(&address, { unsafe bind(descriptor, $0, $1) }) == 0 { return descriptor }
        close(descriptor)
        return -1
    }
}
