import Reactor
import Synchronization

/// Copies of files of trust anchors that no `TLSMaterial` holds. A changed file gets a new copy with another path, so that
/// libcurl reuses neither parsed anchors nor TLS sessions. Any thread; blocks on the disk.
enum AnchorCopies {
    private struct Copy {
        let stamps: [FileStamp]
        let file: MemoryFile
    }

    /// Limit of copies.
    private static let most = 64
    private static let copies = Mutex<[[String]: Copy]>([:])

    /// Returns a copy of the files in one; `nil` if one can't be read.
    static func file(joining paths: [String]) -> MemoryFile? {
        copies.withLock { copies in
            let stamps = paths.map { FileStamp($0) }
            if let copy = copies[paths], copy.stamps == stamps { return copy.file }
            guard let file = try? MemoryFile(joining: paths) else { return nil }
            if copies.count >= most { copies = [:] }
            copies[paths] = Copy(stamps: stamps, file: file)
            return file
        }
    }
}
