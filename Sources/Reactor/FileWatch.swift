import CLinux
import Glibc
import Synchronization

/// Reports changes of files that are rewritten, replaced by rename(2), or reached through another symbolic link, as
/// when Kubernetes swaps a volume's `..data`. Uses inotify(7) on the folders along the paths, and on the files, which may
/// be mounts. Also checks every 30 seconds, for folders that are missing or can't be watched. Runs on its own thread, because file systems may block.
/// Safe on any thread; ends when its last reference is released.
public final class FileWatch: Sendable {
    private let core: Core

    /// - Parameters:
    ///   - interval: milliseconds between two checks without an event.
    ///   - isBlind: `true` uses no inotify; for tests.
    ///   - changed: called with the changed paths, on the watch's thread. Also called once for each newly watched path,
    ///     because the file may have changed before.
    /// - Throws: `SystemError` when no thread could be started.
    public init(
        interval: Int32 = 30_000, isBlind: Bool = false, _ changed: @escaping @Sendable (Set<String>) -> Void
    ) throws(SystemError) {
        core = try Core(interval, isBlind, changed)
        try core.start()
    }

    deinit { core.tell { $0.isStopped = true } }

    public func watch(_ paths: Set<String>) { core.tell { $0.paths = paths } }
}

private final class Core: Sendable {
    struct State {
        var paths: Set<String> = []
        var isStopped = false
    }

    private let interval: Int32
    /// Descriptor of inotify; -1 if it is unavailable.
    private let inotify: Int32
    private let wakeUp: WakeUp
    private let changed: @Sendable (Set<String>) -> Void
    private let state = Mutex(State())

    init(_ interval: Int32, _ isBlind: Bool, _ changed: @escaping @Sendable (Set<String>) -> Void) throws(SystemError) {
        self.interval = interval
        self.changed = changed
        wakeUp = try WakeUp()
        inotify = isBlind ? -1 : inotify_init1(heimdallr_inotify_flags)
    }

    deinit { if inotify >= 0 { close(inotify) } }

    func tell(_ change: (inout State) -> Void) {
        state.withLock { change(&$0) }
        wakeUp.wake()
    }

    func start() throws(SystemError) { try startThread("files") { self.run() } }

    // MARK: The thread

    /// Time to wait after an event for related changes: a certificate and its key change one after the other.
    private static let settleMicroseconds: UInt32 = 100_000
    private static let maxLinks = 40

    private func run() {
        var known: [String: FileStamp] = [:]
        var watched: [Int32: Set<String>] = [:]
        while true {
            let now = state.withLock { $0 }
            if now.isStopped { return }
            watchAll(now.paths, &watched)
            var news: Set<String> = []
            known = known.filter { now.paths.contains($0.key) }
            for path in now.paths {
                let stamp = FileStamp(path)
                if known.updateValue(stamp, forKey: path) != stamp { news.insert(path) }
            }
            if !news.isEmpty { changed(news) }
            // The wait is limited, because network file systems do not report changes by other machines.
            guard wait(watched, now.paths.isEmpty ? -1 : interval) else { continue }
            usleep(Self.settleMicroseconds)
            _ = drain(watched)
        }
    }

    /// Waits for an event. Returns whether a watched name may have changed; `false` after the timeout or a wake-up.
    private func wait(_ watched: [Int32: Set<String>], _ timeout: Int32) -> Bool {
        while true {
            var queries = [
                pollfd(fd: wakeUp.descriptor, events: Int16(POLLIN), revents: 0),
                pollfd(fd: inotify, events: Int16(POLLIN), revents: 0),
            ]
            let count = unsafe poll(&queries, 2, timeout)
            if count == 0 { return false }
            if queries[0].revents != 0 {
                wakeUp.clear()
                return false
            }
            if queries[1].revents != 0, drain(watched) { return true }
        }
    }

    /// Reads all pending events. Returns whether one concerns a watched name or folder, or reports lost events.
    private func drain(_ watched: [Int32: Set<String>]) -> Bool {
        guard inotify >= 0 else { return false }
        var isRelevant = false
        var bytes = [UInt8](repeating: 0, count: 16 * 1024)
        while true {
            let length = unsafe bytes.withUnsafeMutableBytes { unsafe read(inotify, $0.baseAddress, $0.count) }
            guard length > 0 else { return isRelevant }
            var start = 0
            // struct inotify_event: wd, mask, cookie, len, name.
            while start + 16 <= length {
                func number(_ offset: Int) -> UInt32 {
                    (0..<4).reduce(0) { $0 | UInt32(bytes[start + offset + $1]) << UInt32(8 * $1) }
                }
                let (folder, mask, room) = (Int32(bitPattern: number(0)), number(4), Int(number(12)))
                let end = min(start + 16 + room, length)
                let name = String(decoding: bytes[(start + 16)..<end].prefix { $0 != 0 }, as: UTF8.self)
                let isAboutFolder = mask & UInt32(IN_Q_OVERFLOW | IN_IGNORED | IN_DELETE_SELF | IN_MOVE_SELF) != 0
                if isAboutFolder || watched[folder]?.contains(name) == true { isRelevant = true }
                start = end
            }
        }
    }

    private func watchAll(_ paths: Set<String>, _ watched: inout [Int32: Set<String>]) {
        guard inotify >= 0 else { return }
        var next: [Int32: Set<String>] = [:]
        for path in paths {
            for (folder, name) in Self.steps(to: path) {
                let number = unsafe inotify_add_watch(inotify, folder, heimdallr_inotify_mask)
                guard number >= 0 else { continue }
                next[number, default: []].insert(name)
            }
            // Events of the file itself have no name.
            let number = unsafe inotify_add_watch(inotify, path, heimdallr_inotify_file_mask)
            if number >= 0 { next[number, default: []].insert("") }
        }
        for number in watched.keys where next[number] == nil { inotify_rm_watch(inotify, number) }
        watched = next
    }

    /// Returns the names that determine the target of `path`, with their folders: the last name, and each symbolic link
    /// on the way.
    static func steps(to path: String) -> [(folder: String, name: String)] {
        var left = path.split(separator: "/").map(String.init)
        var folder = path.hasPrefix("/") ? "" : currentFolder
        var steps: [(folder: String, name: String)] = []
        var links = 0
        while !left.isEmpty {
            let name = left.removeFirst()
            if name == "." { continue }
            if name == ".." {
                folder = String(folder[..<(folder.lastIndex(of: "/") ?? folder.startIndex)])
                continue
            }
            let here = "\(folder)/\(name)"
            if let target = target(of: here), links < maxLinks {
                links += 1
                steps.append((folder.isEmpty ? "/" : folder, name))
                if target.hasPrefix("/") { folder = "" }
                left = target.split(separator: "/").map(String.init) + left
            } else {
                if left.isEmpty { steps.append((folder.isEmpty ? "/" : folder, name)) }
                folder = here
            }
        }
        return steps
    }

    private static var currentFolder: String { target(of: "/proc/self/cwd") ?? "" }

    /// readlink(2).
    private static func target(of path: String) -> String? {
        var room = [UInt8](repeating: 0, count: 4096)
        let count = unsafe room.withUnsafeMutableBytes { buffer in
            guard let start = buffer.baseAddress else { return -1 }
            return unsafe readlink(path, start.assumingMemoryBound(to: CChar.self), buffer.count)
        }
        return count <= 0 ? nil : String(decoding: room[..<count], as: UTF8.self)
    }
}
