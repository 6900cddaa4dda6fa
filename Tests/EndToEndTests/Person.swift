import Foundation
import TestSupport

/// A person at headless Chromium: see Fixtures/sign_in.py. One at a time has a profile.
struct Person {
    let folder = try? TemporaryDirectory()

    func does(_ arguments: [String]) throws -> ChildProcess {
        guard let folder else { throw TestFailure("no folder for the browser's profile") }
        let script = "\(Repository.root)/Tests/EndToEndTests/Fixtures/sign_in.py"
        return try ChildProcess(
            [try Repository.python(), script, "\(folder.path)/profile", folder.path] + arguments,
            environment: ["HOME": folder.path, "http_proxy": nil, "https_proxy": nil])
    }

    /// Waits for the end. Expects no error in the browser, and requests to these two servers only.
    func done(_ arguments: [String], with login: LoginProxy) async throws -> [String] {
        let process = try does(arguments)
        return try await Self.judged(process, login)
    }

    static func judged(_ process: ChildProcess, _ login: LoginProxy) async throws -> [String] {
        guard try await process.ended(within: .seconds(120)) == .exited(0) else {
            throw TestFailure("\(process.transcript)\n\(login.proxy.log)\n\(login.server.log)")
        }
        let lines = process.output.split(separator: "\n").map(String.init)
        for line in lines {
            if line.hasPrefix("asked "), !line.hasPrefix("asked \(login.admin)/"),
                !line.hasPrefix("asked \(login.server.url)/")
            {
                throw TestFailure("a page asked elsewhere: \(line)")
            }
            if line.hasPrefix("complaint "), !line.contains("\(login.server.url)/favicon.ico") {
                throw TestFailure(line)
            }
        }
        return lines
    }
}
