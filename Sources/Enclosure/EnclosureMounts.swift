import CLinux
import Glibc

/// The file system of an enclosed program: that of outside, but with files of its own for the look-up of names, and
/// without what would lead out or show a secret. mount(2).
public struct EnclosureMounts: Sendable, Equatable {
    /// Files and sockets that are empty inside.
    public var hiddenFiles: [String] = []
    /// Folders that are empty inside, but for `shown`.
    public var hiddenFolders: [String] = []
    /// Folders that stay visible although they lie in a hidden one.
    public var shown: [String] = []

    public init() {}

    private static let separator = "--"

    public var words: [String] {
        hiddenFiles + [Self.separator] + hiddenFolders + [Self.separator] + shown
    }

    public init?(_ words: [String]) {
        let parts = words.split(separator: Self.separator, omittingEmptySubsequences: false)
        guard parts.count == 3 else { return nil }
        (hiddenFiles, hiddenFolders, shown) = (Array(parts[0]), Array(parts[1]), Array(parts[2]))
    }

    /// Both together. A folder that either shows stays visible.
    public func joined(with other: EnclosureMounts) -> EnclosureMounts {
        var all = self
        all.hiddenFiles += other.hiddenFiles.filter { !hiddenFiles.contains($0) }
        all.hiddenFolders += other.hiddenFolders.filter { !hiddenFolders.contains($0) }
        all.shown += other.shown.filter { !shown.contains($0) }
        return all
    }

    /// Where the files of the look-up come from for a moment. It is visible again afterwards.
    private static let staging = "/tmp"

    private static var lookUp: [(path: String, text: String)] {
        var name = [CChar](repeating: 0, count: 256)
        _ = unsafe gethostname(&name, name.count - 1)
        let host = String(decoding: name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return [
            ("/etc/resolv.conf", "nameserver 127.0.0.1\n"),
            ("/etc/hosts", "127.0.0.1 localhost \(host)\n::1 localhost \(host)\n"),
            ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\n"),
        ]
    }

    /// Makes mounts made here stay here; later ones of outside come in. Some containers forbid mounts, and so this one.
    static func separate() throws(EnclosureFault) { try mount(nil, "/", heimdallr_mount_slave) }

    /// Changes the mounts of this process's namespace.
    func apply() throws(EnclosureFault) {
        let folder = unsafe getcwd(nil, 0)
        defer { unsafe free(folder) }
        try Self.replaceLookUp()
        let kept = shown.map { unsafe open($0, heimdallr_path_flags | O_DIRECTORY) }
        for path in hiddenFolders { try Self.mount("tmpfs", path, heimdallr_mount_staging, isOptional: true) }
        for (path, descriptor) in zip(shown, kept) where descriptor >= 0 {
            Self.makeFolders(of: path)
            try Self.mount("/proc/self/fd/\(descriptor)", path, heimdallr_mount_bind)
            // Other programs use these files, too. Before Linux 5.12 they stay as they are.
            _ = unsafe heimdallr_make_read_only(path)
            close(descriptor)
        }
        for path in hiddenFiles { try Self.mount("/dev/null", path, heimdallr_mount_bind, isOptional: true) }
        // The working folder, as the path now says: it may be hidden.
        if let folder = unsafe folder, unsafe chdir(folder) < 0 { try check(.mounts, unsafe chdir("/")) }
    }

    private static func replaceLookUp() throws(EnclosureFault) {
        // Links may lead into the staging folder, so the files are opened before it is covered.
        let targets = lookUp.map { (file: $0, target: unsafe open($0.path, heimdallr_path_flags)) }
        defer { for one in targets where one.target >= 0 { close(one.target) } }
        try mount("tmpfs", staging, heimdallr_mount_staging)
        defer { _ = unsafe umount2(staging, heimdallr_unmount_lazily) }
        // A file that does not exist can't be covered. Without one, the C library asks 127.0.0.1, too.
        for (number, (file, target)) in targets.enumerated() where target >= 0 {
            let source = "\(staging)/\(number)"
            let written = unsafe open(source, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
            try check(.mounts, written)
            defer { close(written) }
            let bytes = Array(file.text.utf8)
            let count = unsafe bytes.withUnsafeBytes { unsafe write(written, $0.baseAddress, $0.count) }
            try check(.mounts, Int32(truncatingIfNeeded: count))
            try check(.mounts, fchmod(written, 0o644))
            try mount(source, "/proc/self/fd/\(target)", heimdallr_mount_bind)
        }
    }

    /// Makes the folders in front of `path` on a new, empty file system.
    private static func makeFolders(of path: String) {
        var folder = ""
        for part in path.split(separator: "/") {
            folder += "/\(part)"
            _ = unsafe mkdir(folder, 0o755)
        }
    }

    /// - Parameters:
    ///   - source: a path to bind; `tmpfs` for an empty file system; `nil` for a change of what is mounted.
    ///   - isOptional: whether a path that does not exist, or that is of another kind, is no fault.
    private static func mount(
        _ source: String?, _ target: String, _ flags: UInt, isOptional: Bool = false
    ) throws(EnclosureFault) {
        let isNew = source == "tmpfs"
        // With root mapped, the folder's mode would let everybody else look for names in it. It has none.
        let done = unsafe CLinux.mount(source ?? "none", target, isNew ? source : nil, flags, isNew ? "mode=0755" : nil)
        if done < 0, isOptional, errno == ENOENT || errno == ENOTDIR || errno == EACCES { return }
        try check(.mounts, done)
    }

    /// Makes what would let root change the kernel read-only: it checks users there, not capabilities.
    static func protectKernel() throws(EnclosureFault) {
        for path in ["/proc/sys", "/proc/sysrq-trigger", "/sys"] where unsafe access(path, F_OK) == 0 {
            guard unsafe CLinux.mount(path, path, nil, heimdallr_mount_bind, nil) >= 0,
                unsafe heimdallr_make_read_only(path) >= 0
            else { throw EnclosureFault(.readOnlyKernel) }
        }
    }
}
