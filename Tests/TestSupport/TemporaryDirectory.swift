import Foundation
import Synchronization

/// A folder with mode 0700, removed with its contents when the last reference goes, or the process ends.
public final class TemporaryDirectory: Sendable {
    public let path: String

    private static let all: Mutex<Set<String>> = {
        atexit { TemporaryDirectory.all.withLock { $0 }.forEach { try? FileManager.default.removeItem(atPath: $0) } }
        return Mutex([])
    }()

    /// - Throws: when no folder can be made in the system's temporary folder.
    public init() throws {
        // The name is short, because the path of a Unix socket has at most 107 bytes.
        let path = FileManager.default.temporaryDirectory.appendingPathComponent(
            "heimdallr-\(UInt32.random(in: .min ... .max))"
        ).path
        try FileManager.default.createDirectory(
            atPath: path, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        self.path = path
        _ = Self.all.withLock { $0.insert(path) }
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
        _ = Self.all.withLock { $0.remove(path) }
    }

    /// Returns the path of a file of this name, which need not exist.
    public func path(of name: String) -> String { path + "/" + name }

    /// Writes a file, mode 0600, and returns its path.
    @discardableResult
    public func write(_ text: String, to name: String) throws -> String {
        try write(Array(text.utf8), to: name)
    }

    /// Writes a file, mode 0600, and returns its path.
    @discardableResult
    public func write(_ bytes: [UInt8], to name: String) throws -> String {
        let file = path(of: name)
        guard
            FileManager.default.createFile(atPath: file, contents: Data(bytes), attributes: [.posixPermissions: 0o600])
        else { throw TestFailure("can't write \(file)") }
        return file
    }

    /// Returns the text of a file in this folder.
    public func read(_ name: String) throws -> String {
        try String(contentsOfFile: path(of: name), encoding: .utf8)
    }
}
