import FileSystem
import Glibc

/// The users and groups of the new user namespace: those of outside, under the same numbers. user_namespaces(7).
enum EnclosureIdentity {
    /// Maps one user and one group alone: those that this process had outside. Called inside, where they have no numbers
    /// before that.
    static func map(user: uid_t, group: gid_t) throws(EnclosureFault) {
        try write("deny", to: "/proc/self/setgroups")
        try write("\(user) \(user) 1", to: "/proc/self/uid_map")
        try write("\(group) \(group) 1", to: "/proc/self/gid_map")
    }

    /// Maps all users and groups that this process has itself, each onto itself. Called by the launcher as root.
    /// - Returns: `false` if the kernel refuses it. Then the process inside can map its own user.
    static func mapAll(of process: Int32) -> Bool {
        ["uid_map", "gid_map"].allSatisfy { name in
            let map = (try? FileSystem.read("/proc/self/\(name)", limit: 1 << 16)) ?? []
            let lines = String(decoding: map, as: UTF8.self).split(separator: "\n").map { line in
                let words = line.split(separator: " ")
                return words.count == 3 ? "\(words[0]) \(words[0]) \(words[2])\n" : ""
            }
            return (try? write(lines.joined(), to: "/proc/\(process)/\(name)")) != nil
        }
    }

    private static func write(_ text: String, to path: String) throws(EnclosureFault) {
        let file = unsafe open(path, O_WRONLY | O_CLOEXEC)
        try check(.identity, file)
        defer { close(file) }
        let bytes = Array(text.utf8)
        let written = unsafe bytes.withUnsafeBytes { unsafe Glibc.write(file, $0.baseAddress, $0.count) }
        try check(.identity, Int32(truncatingIfNeeded: written))
    }
}
