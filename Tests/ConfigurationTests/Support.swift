import Configuration
import Foundation
import Testing

/// Every problem of a text, as it is printed.
func problems(
    _ yaml: String, environment: [String: String] = ["SECRET": "s3cr3t"], _ location: SourceLocation = #_sourceLocation
) -> [String] {
    do {
        _ = try Configuration.parse(yaml: yaml, file: "c.yaml", environment: environment)
        EditorSchema.agrees(yaml, location)
        return []
    } catch {
        return error.problems.map(\.description)
    }
}

/// The values of a text that must be good.
func good(
    _ yaml: String, file: String = "c.yaml", environment: [String: String] = ["SECRET": "s3cr3t"],
    _ location: SourceLocation = #_sourceLocation
) throws -> (configuration: Configuration, warnings: [String]) {
    do {
        let (configuration, warnings) = try Configuration.parse(yaml: yaml, file: file, environment: environment)
        EditorSchema.agrees(yaml, location)
        return (configuration, warnings.map(\.description))
    } catch {
        Issue.record("\(error)", sourceLocation: location)
        throw error
    }
}

/// A separate folder, deleted with its last reference.
final class TemporaryFolder {
    let path: String

    init() throws {
        path = NSTemporaryDirectory() + "heimdallr-configuration-\(UUID().uuidString)"
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    @discardableResult
    func write(_ name: String, _ content: String) throws -> String {
        try write(name, Array(content.utf8))
    }

    @discardableResult
    func write(_ name: String, _ content: [UInt8]) throws -> String {
        let file = path + "/" + name
        try Data(content).write(to: URL(fileURLWithPath: file))
        // As a secret's file should be.
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
        return file
    }
}
