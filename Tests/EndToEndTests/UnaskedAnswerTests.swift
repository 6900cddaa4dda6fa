import TestSupport
import Testing

@Suite("answers that nobody asked for, while the proxy is paused", .serialized, .timeLimit(.minutes(2)))
struct UnaskedAnswerTests {
    /// By hand for longer: Tests/EndToEndTests/Fixtures/unasked_answers.py --seconds 300.
    @Test(arguments: [false, true])
    func `an answer that was sent before its request is nobody's`(isSecure: Bool) async throws {
        let authority = try await PrivateCA()
        let certificate = try await authority.server()
        let files = [certificate.certificateFile, certificate.keyFile, authority.certificateFile]
        let output = try await ChildProcess.output(
            of: [
                "/usr/bin/python3", fixture("unasked_answers.py"), try Repository.executable(), "--seconds", "8",
            ] + (isSecure ? ["--secure"] + files : []), within: .seconds(60))
        var counts: [Substring: Int] = [:]
        for word in output.split(whereSeparator: \.isWhitespace) {
            let parts = word.split(separator: "=")
            if parts.count == 2 { counts[parts[0]] = Int(parts[1]) }
        }
        #expect(counts["planted", default: 0] > 50, "\(output)")
        #expect(counts["answered", default: 0] > 200, "\(output)")
        // A pause may fall between the look and the head: two adjacent system calls, but for a debug build's slowness.
        #expect(counts["passed", default: .max] * 100 <= counts["planted", default: 0] * 2, "\(output)")
        #expect(counts["failed", default: .max] * 100 <= counts["answered", default: 0], "\(output)")
    }
}
