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

    /// Descriptors of a request: its connection, that to the upstream, and two for the look-up of a name.
    private static let ofRequest = 4
    /// No proxy has fewer descriptors open when it listens.
    private static let ofSmallestProxy = 12

    /// Called before the start opens anything.
    static func checkStart() throws(DescriptorShortage) {
        let limit = DescriptorLimit.current
        guard limit >= ofSmallestProxy + ofRequest else { throw DescriptorShortage(limit: limit) }
    }

    /// Called when everything is open that stays open.
    static func check() throws(DescriptorShortage) {
        let limit = DescriptorLimit.current
        // Reading the folder opens a descriptor. Without /proc, the number is unknown.
        guard limit < 1024 else { return }
        let open = max(0, FileSystem.names(in: "/proc/self/fd").count - 1)
        guard MachineShortage.ofSockets == nil, limit - open >= ofRequest else {
            throw DescriptorShortage(limit: limit)
        }
    }
}
