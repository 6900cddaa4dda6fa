import Foundation
import TestSupport
import Testing

@Suite("a lack of this machine is named as such", .timeLimit(.minutes(3)))
struct ShortageTests {
    private static let remedy = "raise the limit of file descriptors"

    /// Leaves the process no descriptor to open: the limit becomes the lowest number that is free.
    private func exhaust(_ process: ChildProcess) async throws {
        let open = try await settled("the descriptors") {
            Set(try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process.pid)/fd").compactMap { Int($0) })
        }
        let free = try #require((0...).first { !open.contains($0) })
        try await ChildProcess.output(of: ["prlimit", "--pid", "\(process.pid)", "--nofile=\(free):"])
    }

    @Test(arguments: [["GET http://api.test/", "api.test"], ["GET http://named.test/", "named.test"]])
    func `an upstream that can't be reached for lack of descriptors is not called unreachable`(
        request: [String]
    ) async throws {
        let origin = try RecordingOrigin()
        let named = origin.url.replacing("127.0.0.1", with: "localhost")
        let proxy = try await RunningProxy(
            to: origin, more: "  - {host: named.test, url: \"\(named)\", allow_plaintext: true}")
        let client = try await RawClient.connect(port: proxy.port)
        try await client.send("GET http://unlisted.test/ HTTP/1.1\r\nHost: unlisted.test\r\n\r\n")
        #expect(try await client.response().status == 403)
        try await eventually("it has a token") { proxy.log.contains("token acquired") }
        try await exhaust(proxy.process)
        try await client.send("\(request[0]) HTTP/1.1\r\nHost: \(request[1])\r\n\r\n")
        let response = try await client.response()
        #expect(response.status == 503 && response.text.contains("problem:machine-shortage"), "\(response.text)")
        #expect(response.text.contains(Self.remedy) && !response.text.contains("network"), "\(response.text)")
        try await eventually("the log says so") {
            proxy.log.split(separator: "\n").contains {
                $0.contains(" upstream failed ") && $0.contains("The proxy's machine can't make the connection")
            }
        }
    }

    @Test func `a token endpoint that can't be reached for lack of descriptors is not called unreachable`() async throws
    {
        let proxy = try await RunningProxy(to: RecordingOrigin(), tokenEndpoint: TokenEndpoint([.status(503)]))
        try await eventually("the first request has failed") { proxy.log.contains("no token from the token endpoint") }
        try await exhaust(proxy.process)
        try await eventually("the log names the lack") {
            proxy.log.split(separator: "\n").contains {
                $0.contains("no token from the token endpoint") && $0.contains("what_to_do=\"\(Self.remedy)")
            }
        }
    }

    @Test func `a start with few descriptors can serve a request, or ends with the remedy`() async throws {
        let origin = try RecordingOrigin()
        // With fewer than some seven, the Swift runtime ends the process before `main`.
        for limit in [12, 14, 16, 18, 20, 22, 24, 28, 32] {
            do {
                let proxy = try await RunningProxy(to: origin, under: ["prlimit", "--nofile=\(limit)"])
                #expect(try await proxy.get("http://api.test/").status == 200, "\(limit): \(proxy.log)")
            } catch let failure as TestFailure {
                #expect(failure.description.contains("exited(1)"), "\(limit): \(failure)")
                #expect(failure.description.contains(Self.remedy), "\(limit): \(failure)")
            }
        }
    }
}
