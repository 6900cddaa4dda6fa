import Foundation
import TestSupport
import Testing

@Suite("many handshakes inside CONNECT", .timeLimit(.minutes(10)))
struct HandshakeCrowdTests {
    private let directory: TemporaryDirectory
    private let origin: RecordingOrigin
    private let proxy: RunningProxy
    private let roots: String

    init() async throws {
        let directory = try TemporaryDirectory()
        origin = try RecordingOrigin()
        let proxy = try await RunningProxy(
            to: origin, upstream: "intercept: true", more: "log: {access: false}",
            environment: ["XDG_RUNTIME_DIR": directory.path])
        (self.directory, self.proxy) = (directory, proxy)
        roots = try await eventually("the trust files") { proxy.trustFolder } + "/roots.pem"
    }

    private func handshakes(_ lines: String) async throws -> String {
        try await ChildProcess.output(
            of: [try Repository.python(), fixture("handshakes.py"), "\(proxy.port)", roots], input: Array(lines.utf8),
            within: .seconds(300))
    }

    @Test func `3,200 handshakes leave no memory behind`() async throws {
        #expect(try await handshakes("full 400\nresumed 400\n") == "done\n399\n")
        let before = try proxy.process.anonymousMemory()
        for _ in 0..<3 { #expect(try await handshakes("full 400\nresumed 400\n") == "done\n399\n") }
        #expect(try proxy.process.anonymousMemory() - before < 2 << 20)
        #expect(origin.requests.isEmpty)
    }

    @Test func `1,000 handshakes begun and left hold nothing up and leave no descriptor`() async throws {
        #expect(try await get() == "ok")
        let before = try descriptors()
        let clients = try ChildProcess(
            [
                "sh", "-c",
                """
                { echo begun 1000; while [ ! -e \(directory.path)/go ]; do sleep 0.05; done; echo left; } |
                "$@"
                """, "sh", try Repository.python(), fixture("handshakes.py"), "\(proxy.port)", roots,
            ])
        try await eventually("all have begun") {
            if clients.ending != nil { throw TestFailure(clients.transcript) }
            return clients.output == "done\n"
        }
        #expect(try await get() == "ok")
        try directory.write("", to: "go")
        #expect(try await clients.ended() == .exited(0), "\(clients.transcript)")
        try await eventually("the former number of descriptors") { try descriptors() <= before }
        #expect(try await get() == "ok")
    }

    private func get() async throws -> String {
        try await ChildProcess.output(
            of: ["curl", "-sS", "--cacert", roots, "-x", proxy.url, "https://api.test/"],
            environment: InterceptedProgram.clean)
    }

    private func descriptors() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(proxy.process.pid)/fd").count
    }
}
