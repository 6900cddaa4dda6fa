import FileSystem
import Reactor
import WireText

/// A limit of file descriptors under which the proxy could not serve a single request.
struct DescriptorShortage: Error, CustomStringConvertible {
    let limit: Int

    var description: String {
        "this process may have only \(limit) files and sockets open at once, which is not enough to serve a request: "
            + "\(MachineShortage.descriptors.remedy)"
    }

    /// Descriptors of a request: its connection, and for the upstream and the token endpoint each a connection, libcurl's
    /// pair to wake up, and two for the look-up of the name.
    private static let ofRequest = 11
    /// Descriptors that the smallest proxy opens before it listens.
    private static let ofSmallestProxy = 12

    /// Called before the start opens anything. The process may have inherited descriptors.
    static func checkStart() throws(DescriptorShortage) { try check(for: ofSmallestProxy + ofRequest) }

    /// Called when everything is open that stays open.
    static func check() throws(DescriptorShortage) { try check(for: ofRequest) }

    private static func check(for needed: Int) throws(DescriptorShortage) {
        let limit = DescriptorLimit.current
        // A greater limit needs no look at all descriptors, which takes time.
        guard limit < 1024 else { return }
        // The folder is itself open while it is read. Without /proc, the number is unknown.
        let open = max(0, FileSystem.names(in: "/proc/self/fd").count { Int($0).map { $0 < limit } ?? false } - 1)
        guard MachineShortage.ofSockets == nil, limit - open >= needed else { throw DescriptorShortage(limit: limit) }
    }
}
