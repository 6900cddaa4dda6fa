import Foundation
import Synchronization

/// A folder of the test's own, mode 0700, removed with everything in it when the last reference goes, or the process ends.
public final class TemporaryDirectory: Sendable {
    public let path: String

    private static let all: Mutex<Set<String>> = {
        atexit { TemporaryDirectory.all.withLock { $0 }.forEach { try? FileManager.default.removeItem(atPath: $0) } }
        return Mutex([])
    }()

    /// - Throws: when the system's temporary folder can't be written.
    public init() throws {
        // Short on purpose: the path of a Unix socket has 107 bytes.
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

    /// Where a file of that name is or would be.
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

    /// The text of a file in here.
    public func read(_ name: String) throws -> String {
        try String(contentsOfFile: path(of: name), encoding: .utf8)
    }
}
