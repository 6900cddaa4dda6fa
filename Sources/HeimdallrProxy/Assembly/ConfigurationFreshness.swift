import FileSystem
import Synchronization

/// Detects whether the configuration file has changed since the proxy read it.
final class ConfigurationFreshness: Sendable {
    private static let limit = 16 << 20

    /// Path of the file; `nil` if the configuration comes from the environment.
    private let path: String?
    /// Hash of the file's content when it was read.
    private let hash = Mutex<Int?>(nil)

    init(_ source: ConfigurationSource) { path = source.file }

    /// Notes the file's content. Called before each reading, so that no later change is missed. Blocks.
    func note() {
        let now = current()
        hash.withLock { $0 = now }
    }

    func hasChanged() -> Bool {
        guard path != nil, let noted = hash.withLock({ $0 }) else { return false }
        return current() != noted
    }

    /// Returns the hash of the content; `nil` if the file can't be read.
    private func current() -> Int? {
        guard let path, let bytes = try? FileSystem.read(path, limit: Self.limit) else { return nil }
        return bytes.hashValue
    }
}
