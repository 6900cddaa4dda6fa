import Glibc

/// Numbers of a file's status (stat(2)), none for a missing file. Each change of the file changes one of them.
public struct FileStamp: Sendable, Equatable {
    private let numbers: [Int]

    public init(_ path: String) {
        var status = stat()
        guard unsafe stat(path, &status) == 0 else {
            numbers = []
            return
        }
        numbers = [
            Int(bitPattern: UInt(status.st_dev)), Int(bitPattern: UInt(status.st_ino)), Int(status.st_size),
            status.st_mtim.tv_sec, status.st_mtim.tv_nsec, status.st_ctim.tv_sec, status.st_ctim.tv_nsec,
        ]
    }
}
