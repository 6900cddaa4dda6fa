import Foundation

/// Where things are: this source tree and the build it was made into.
public enum Repository {
    /// The folder with Package.swift.
    public static let root: String = {
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<3 { url.deleteLastPathComponent() }
        return url.path
    }()

    /// The tests' files that are not Swift.
    public static func fixture(_ name: String) -> String { "\(root)/Tests/TestSupport/Fixtures/\(name)" }

    /// The built `heimdallr-proxy`: beside the running tests, or what `HEIMDALLR_PROXY_EXECUTABLE` names.
    public static func executable() throws -> String {
        if let path = ProcessInfo.processInfo.environment["HEIMDALLR_PROXY_EXECUTABLE"] { return path }
        let tests = try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe")
        let path = URL(fileURLWithPath: tests).deletingLastPathComponent().appendingPathComponent("heimdallr-proxy")
            .path
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw TestFailure("\(path) is not built; run `swift build` first")
        }
        return path
    }

    /// A program of the tests' own Python environment, which `deploy/test` makes at `.venv`, or the one that
    /// `HEIMDALLR_TEST_VENV` names.
    public static func python(_ program: String = "python") throws -> String {
        let folder = ProcessInfo.processInfo.environment["HEIMDALLR_TEST_VENV"] ?? root + "/.venv"
        let path = "\(folder)/bin/\(program)"
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw TestFailure("\(path) is missing; run deploy/test, which installs what the tests need")
        }
        return path
    }
}
