import Administration
import FoundationEssentials
import Proxy

/// Who listens on a port of this machine already. From /proc (proc(5)), as far as this process may look.
enum PortHolder {
    /// `nginx (pid 123)`, for an error that says that a port is in use; `nil` where there is nothing to say.
    static func named(by error: any Error) -> String? {
        switch error {
        case let error as ProxyServer.ListenError: error.portInUse.flatMap { of($0) }
        case AdministrationError.listen(let address, let reason) where reason.contains("in use"):
            address.split(separator: ":").last.flatMap { UInt16($0) }.flatMap { of($0) }
        default: nil
        }
    }

    static func of(_ port: UInt16) -> String? {
        let found = ["tcp", "tcp6"].flatMap { listeners(inTable: KernelTable.text("/proc/net/\($0)"), port: port) }
        guard !found.isEmpty else { return nil }
        let sockets = Set(found.map { "socket:[\($0.inode)]" })
        let manager = FileManager.default
        let processes = ((try? manager.contentsOfDirectory(atPath: "/proc")) ?? []).compactMap { Int($0) }.sorted()
        for process in processes {
            let folder = "/proc/\(process)/fd"
            for descriptor in (try? manager.contentsOfDirectory(atPath: folder)) ?? [] {
                guard let target = try? manager.destinationOfSymbolicLink(atPath: "\(folder)/\(descriptor)"),
                    sockets.contains(target)
                else { continue }
                let name = KernelTable.text("/proc/\(process)/comm").prefix { $0 != "\n" }
                return name.isEmpty ? "pid \(process)" : "\(name) (pid \(process))"
            }
        }
        return "a process of user \(found[0].user), which this one may not look into"
    }

    /// Of the table's lines those that listen on this port: `0: 0100007F:1F90 00000000:0000 0A … uid … inode`.
    static func listeners(inTable table: String, port: UInt16) -> [(user: String, inode: String)] {
        table.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ")
            guard fields.count > 9, fields[3] == "0A", let digits = fields[1].split(separator: ":").last,
                UInt16(digits, radix: 16) == port
            else { return nil }
            return (String(fields[7]), String(fields[9]))
        }
    }
}
