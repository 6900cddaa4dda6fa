import Administration
import Configuration
import FileSystem
import Proxy
import WireText

/// Who listens already where this process wants to. From /proc (proc(5)), as far as this process may look.
enum PortHolder {
    /// What an error says of an address that is in use; `nil` where it is about something else.
    static func conflict(in error: any Error, _ configuration: Configuration) -> Conflict? {
        switch error {
        case let error as ProxyServer.ListenError:
            if let port = error.portInUse { return Conflict(port: port, key: key(port, configuration)) }
            return error.pathInUse.map { Conflict(path: $0, key: key($0, configuration)) }
        case AdministrationError.listen(let address, let reason) where reason.contains("in use"):
            return address.split(separator: ":").last.flatMap { UInt16($0) }
                .map { Conflict(port: $0, key: "admin.listen") }
        case AdministrationError.socket(let path, let reason) where reason.contains("listens on it"):
            return Conflict(path: path, key: "admin.socket")
        default: return nil
        }
    }

    struct Conflict: Equatable {
        /// `nginx (pid 123)`; `nil` where nothing can be said.
        var holder: String?
        /// To stand behind a colon.
        var advice: String

        init(port: UInt16, key: String) {
            holder = PortHolder.of(port)
            advice = "end that one, or write another port into \(key)"
        }

        init(path: String, key: String) {
            holder = PortHolder.of(path: path)
            advice = "end that one, or write another path into \(key)"
        }
    }

    /// Where the configuration has the address.
    private static func key(_ port: UInt16, _ configuration: Configuration) -> String {
        key(configuration) { if case .tcp(_, port) = $0 { true } else { false } }
    }

    private static func key(_ path: String, _ configuration: Configuration) -> String {
        key(configuration) { if case .unix(path, _) = $0 { true } else { false } }
    }

    private static func key(_ configuration: Configuration, _ matches: (ListenAddress) -> Bool) -> String {
        if configuration.proxy.listen.contains(where: matches) { return "proxy.listen" }
        let index = configuration.upstreams.firstIndex { $0.listen.map(matches) == true }
        return index.map { "upstreams[\($0)].listen" } ?? "proxy.listen"
    }

    static func of(_ port: UInt16) -> String? {
        let found = ["tcp", "tcp6"].flatMap { listeners(inTable: Self.table("/proc/net/\($0)"), port: port) }
        guard !found.isEmpty else { return nil }
        return process(with: Set(found.map { "socket:[\($0.inode)]" }))
            ?? "a process of user \(found[0].user), which this one may not look into"
    }

    /// Of a Unix socket.
    static func of(path: String) -> String? {
        process(with: Set(inodes(inTable: Self.table("/proc/net/unix"), path: path).map { "socket:[\($0)]" }))
    }

    private static func process(with sockets: Set<String>) -> String? {
        guard !sockets.isEmpty else { return nil }
        let processes = FileSystem.names(in: "/proc").compactMap { Int($0) }.sorted()
        for process in processes {
            let folder = "/proc/\(process)/fd"
            for descriptor in FileSystem.names(in: folder) {
                guard let target = FileSystem.target(ofLinkAt: "\(folder)/\(descriptor)"),
                    sockets.contains(target)
                else { continue }
                let name = Self.table("/proc/\(process)/comm").prefix { $0 != "\n" }
                return name.isEmpty ? "pid \(process)" : "\(ForeignText.printable(name)) (pid \(process))"
            }
        }
        return nil
    }

    /// A table of the kernel's; empty for one that can't be read, or is absurdly large.
    private static func table(_ path: String) -> String {
        (try? FileSystem.read(path, limit: 16 << 20)).map { String(decoding: $0, as: UTF8.self) } ?? ""
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

    /// Of the table's lines those that listen at this path: `ffff…: 00000002 00000000 00010000 0001 01 inode path`, with
    /// `__SO_ACCEPTCON` among the flags.
    static func inodes(inTable table: String, path: String) -> [String] {
        table.split(separator: "\n").compactMap { line in
            let fields = line.split(separator: " ", maxSplits: 7)
            guard fields.count == 8, fields[7] == path, let flags = UInt32(fields[3], radix: 16), flags & 0x10000 != 0
            else { return nil }
            return String(fields[6])
        }
    }
}
