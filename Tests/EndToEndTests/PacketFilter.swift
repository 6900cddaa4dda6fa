import Foundation

/// A packet filter in a network namespace, with which tests make addresses silent and connections forgotten.
enum PacketFilter {
    /// Reason why there is none; `nil` if there is.
    static let obstacle: String? = {
        guard geteuid() == 0 else { return "network namespaces need root" }
        return Namespaces.work(["--net", "--mount", "sh", "-c", "ip link set lo up && nft add table inet t"])
            ? nil : "this machine has no packet filter for a namespace"
    }()
}

/// Namespaces of unshare(1).
enum Namespaces {
    /// Whether unshare succeeds with these arguments.
    static func work(_ arguments: [String]) -> Bool {
        let probe = Process()
        probe.executableURL = URL(fileURLWithPath: "/usr/bin/unshare")
        probe.arguments = arguments
        probe.standardError = FileHandle.nullDevice
        guard (try? probe.run()) != nil else { return false }
        probe.waitUntilExit()
        return probe.terminationStatus == 0
    }
}
