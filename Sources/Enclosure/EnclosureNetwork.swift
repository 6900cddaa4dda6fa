import CLinux
import Glibc
import Reactor
import WireText

/// Network of a new namespace: one device, `lo`, and rules by which the proxy's ports are local at every address.
/// netlink(7), rtnetlink(7). Other packets find no route: ENETUNREACH at once.
///
/// For IPv4 the route is in the table `local`, which no longer stands before all rules. The kernel sends a refusal only
/// from an address that it finds there. Once the proxy's sockets are closed, a program would wait otherwise.
struct EnclosureNetwork {
    private let socket: Int32
    private var number: UInt32 = 0

    /// Table of routes that the rules lead to: for IPv4 RT_TABLE_LOCAL. For IPv6 any number works but those of rt_tables.
    private static func table(_ family: Int32) -> UInt8 { family == AF_INET ? 255 : 100 }
    /// After the table `local` of IPv6, before `main`. ip-rule(8).
    private static let priority: UInt32 = 1000
    /// 192.0.0.8, which stands for no machine (RFC 7600).
    private static let own: UInt32 = 0xC000_0008

    /// Makes `lo` and the rules of `plan`.
    static func setUp(_ plan: EnclosurePlan) throws(EnclosureFault) {
        let socket = Glibc.socket(AF_NETLINK, Int32(SOCK_RAW.rawValue) | O_CLOEXEC, 0)
        try check(.routes, socket)
        defer { close(socket) }
        var network = EnclosureNetwork(socket: socket)
        try network.raiseLoopback()
        try network.addAddress()
        try network.narrowLocal()
        for family in [AF_INET, AF_INET6] {
            try network.addRoute(family)
            for rule in plan.rules { try network.add(rule, family) }
        }
    }

    private init(socket: Int32) { self.socket = socket }

    /// RTM_NEWLINK with IFF_UP for `lo`, whose number is 1 in each namespace.
    private mutating func raiseLoopback() throws(EnclosureFault) {
        var body = NetlinkBody([UInt8(AF_UNSPEC), 0, 0, 0])
        body.append(1)
        body.append(1)
        body.append(1)
        try send(type: 16, flags: 0, body)
    }

    /// RTM_NEWADDR: an address, because a machine with loopback addresses alone looks up no addresses for programs that set
    /// AI_ADDRCONFIG (getaddrinfo(3)).
    private mutating func addAddress() throws(EnclosureFault) {
        var body = NetlinkBody([UInt8(AF_INET), 32, 0, 0])
        body.append(1)
        let address = Self.own.bigEndian
        body.append(attribute: 2, address)
        body.append(attribute: 1, address)
        try send(type: 20, flags: 0x400, body)
    }

    /// RTM_NEWROUTE of type RTN_LOCAL: with this table, each address is this machine's.
    private mutating func addRoute(_ family: Int32) throws(EnclosureFault) {
        // Destination 0/0; protocol RTPROT_BOOT, scope RT_SCOPE_HOST.
        var body = NetlinkBody([UInt8(family), 0, 0, 0, Self.table(family), 3, 254, 2])
        body.append(0)
        body.append(attribute: 4, 1)
        // Without it, the dialled address would also be the connection's own one, and the log would show it as a peer.
        if family == AF_INET { body.append(attribute: 7, UInt32(0x7F00_0001).bigEndian) }
        try send(type: 24, flags: 0x400, body, family)
    }

    /// Adds a rule: packets to this port, and to this address if there is one, use the table.
    private mutating func add(_ rule: EnclosurePlan.Rule, _ family: Int32) throws(EnclosureFault) {
        var destination: [UInt8] = []
        switch rule.address?.kind {
        case .ipv4(let address, _) where family == AF_INET: destination = address.bigEndianBytes
        case .ipv6(let high, let low, _, _) where family == AF_INET6:
            destination = high.bigEndianBytes + low.bigEndianBytes
        case nil: break
        default: return
        }
        var selectors = NetlinkBody([])
        selectors.append(attribute: 22, bytes: [rule.transport == .tcp ? UInt8(IPPROTO_TCP) : UInt8(IPPROTO_UDP)])
        selectors.append(attribute: 24, UInt32(rule.port) | UInt32(rule.port) << 16)
        try sendRule(to: destination, priority: Self.priority, selectors, family)
    }

    /// Replaces the rule for the whole table `local` of IPv4 by rules for this machine's own addresses.
    private mutating func narrowLocal() throws(EnclosureFault) {
        for (address, bits) in [(UInt32(0x7F00_0000), UInt8(8)), (Self.own, 32)] {
            try sendRule(to: address.bigEndianBytes, bits: bits, priority: 1, NetlinkBody([]), AF_INET)
        }
        // RTM_DELRULE
        try sendRule(type: 33, flags: 0, to: [], priority: 0, NetlinkBody([]), AF_INET)
    }

    /// RTM_NEWRULE with action FR_ACT_TO_TBL, or the same of another type.
    /// - Parameters:
    ///   - destination: the address's bytes; none for all addresses.
    ///   - bits: length of the destination's prefix; `nil` for the whole address.
    private mutating func sendRule(
        type: UInt16 = 32, flags: UInt16 = 0x400, to destination: [UInt8], bits: UInt8? = nil, priority: UInt32,
        _ selectors: NetlinkBody, _ family: Int32
    ) throws(EnclosureFault) {
        var body = NetlinkBody([
            UInt8(family), bits ?? UInt8(destination.count * 8), 0, 0, Self.table(family), 0, 0, 1,
        ])
        body.append(0)
        if !destination.isEmpty { body.append(attribute: 1, bytes: destination) }
        body.append(attribute: 6, priority)
        try send(type: type, flags: flags, NetlinkBody(body.bytes + selectors.bytes), family)
    }

    /// Sends a request, and reads its acknowledgement, NLMSG_ERROR with the number 0 of success.
    /// - Parameter family: the address family that it is for. A kernel without IPv6 refuses it, and has no use for it.
    private mutating func send(
        type: UInt16, flags: UInt16, _ body: NetlinkBody, _ family: Int32 = AF_UNSPEC
    ) throws(EnclosureFault) {
        number += 1
        var message = NetlinkBody([])
        message.append(UInt32(16 + body.bytes.count))
        // NLM_F_REQUEST | NLM_F_ACK
        message.append(UInt32(type) | UInt32(flags | 5) << 16)
        message.append(number)
        message.append(0)
        let bytes = message.bytes + body.bytes
        let sent = unsafe bytes.withUnsafeBytes { unsafe Glibc.send(socket, $0.baseAddress, $0.count, 0) }
        try check(.routes, Int32(truncatingIfNeeded: sent))
        var answer = [UInt8](repeating: 0, count: 4096)
        let count = unsafe answer.withUnsafeMutableBytes { unsafe recv(socket, $0.baseAddress, $0.count, 0) }
        guard count >= 20 else { throw EnclosureFault(.routes, EPROTO) }
        let code = unsafe answer.withUnsafeBytes { unsafe $0.loadUnaligned(fromByteOffset: 16, as: Int32.self) }
        let isWithoutFamily = family == AF_INET6 && (-code == EAFNOSUPPORT || -code == EOPNOTSUPP)
        guard code == 0 || isWithoutFamily else { throw EnclosureFault(.routes, -code) }
    }
}

/// The body of a netlink message, in the machine's byte order.
private struct NetlinkBody {
    private(set) var bytes: [UInt8]

    init(_ bytes: [UInt8]) { self.bytes = bytes }

    mutating func append(_ value: UInt32) {
        unsafe withUnsafeBytes(of: value) { unsafe bytes.append(contentsOf: $0) }
    }

    /// Appends an attribute, filled up to four bytes. rtnetlink(3).
    mutating func append(attribute: UInt16, bytes value: [UInt8]) {
        append(UInt32(4 + value.count) | UInt32(attribute) << 16)
        bytes += value + Array(repeating: 0, count: (4 - value.count % 4) % 4)
    }

    mutating func append(attribute: UInt16, _ value: UInt32) {
        append(attribute: attribute, bytes: unsafe withUnsafeBytes(of: value) { unsafe Array($0) })
    }
}

/// The proxy's sockets inside. Their addresses are not the namespace's own, so they are transparent (ip(7)).
enum EnclosureSockets {
    /// - Returns: descriptors with their places in the plan; none for IPv6 where the kernel has none.
    static func open(_ plan: EnclosurePlan) throws(EnclosureFault) -> [(place: Int, descriptor: Int32)] {
        var opened: [(place: Int, descriptor: Int32)] = []
        for (place, listener) in plan.listeners.enumerated() {
            if let descriptor = try open(listener) { opened.append((place, descriptor)) }
        }
        return opened
    }

    private static func open(_ listener: EnclosurePlan.Listener) throws(EnclosureFault) -> Int32? {
        let isIPv6 = if case .ipv6 = listener.address.kind { true } else { false }
        let isTCP = listener.transport == .tcp
        let type = Int32(isTCP ? SOCK_STREAM.rawValue : SOCK_DGRAM.rawValue)
        let flags = heimdallr_stream_flags & ~Int32(SOCK_STREAM.rawValue)
        let socket = Glibc.socket(isIPv6 ? AF_INET6 : AF_INET, type | flags, 0)
        if socket < 0, isIPv6, errno == EAFNOSUPPORT { return nil }
        try check(.sockets, socket)
        let level = Int32(isIPv6 ? IPPROTO_IPV6 : IPPROTO_IP)
        // IP_TRANSPARENT, IPV6_TRANSPARENT.
        try set(isIPv6 ? 75 : 19, level, socket)
        // An address of `--allow` may have the port of another listener; the more exact listener then answers.
        try set(SO_REUSEADDR, SOL_SOCKET, socket)
        try set(SO_REUSEPORT, SOL_SOCKET, socket)
        if isIPv6 { try set(IPV6_V6ONLY, level, socket) }
        // IPV6_RECVPKTINFO, IP_PKTINFO: an answer comes from the address that was asked.
        if !isTCP { try set(isIPv6 ? 49 : 8, level, socket) }
        let bound: Int32
        do throws(SystemError) {
            bound = try unsafe listener.address.withKernelForm { unsafe bind(socket, $0, $1) }
        } catch { throw EnclosureFault(.sockets, error.code) }
        if bound < 0, isIPv6, errno == EADDRNOTAVAIL {
            close(socket)
            return nil
        }
        try check(.sockets, bound)
        if isTCP { try check(.sockets, listen(socket, 4096)) }
        return socket
    }

    private static func set(_ option: Int32, _ level: Int32, _ socket: Int32) throws(EnclosureFault) {
        var value: Int32 = 1
        try check(.sockets, unsafe setsockopt(socket, level, option, &value, 4))
    }
}
