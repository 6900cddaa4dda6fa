import Foundation

/// Paths in this source tree and in its build.
public enum Repository {
    /// The folder with Package.swift.
    public static let root: String = {
        var url = URL(fileURLWithPath: #filePath)
        for _ in 0..<3 { url.deleteLastPathComponent() }
        return url.path
    }()

    /// Returns the path of a test file that is not Swift.
    public static func fixture(_ name: String) -> String { "\(root)/Tests/TestSupport/Fixtures/\(name)" }

    /// The built `heimdallr-proxy`: the path in `HEIMDALLR_PROXY_EXECUTABLE`, or the file beside the running tests.
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

    /// A program of the tests' Python environment: the folder in `HEIMDALLR_TEST_VENV`, or `.venv`, which `deploy/test`
    /// makes.
    public static func python(_ program: String = "python") throws -> String {
        let folder = ProcessInfo.processInfo.environment["HEIMDALLR_TEST_VENV"] ?? root + "/.venv"
        let path = "\(folder)/bin/\(program)"
        guard FileManager.default.isExecutableFile(atPath: path) else {
            throw TestFailure("\(path) is missing; run deploy/test, which installs the tests' programs")
        }
        return path
    }
}
