import Foundation
import TestSupport
import Testing

@Suite("a process that was stopped looks at the clock before it sends", .timeLimit(.minutes(1)))
struct StoppedProcessTests {
    /// Sleeps, once, in the proxy's last system call before a head goes out on a kept connection: the look at it (recv(2)
    /// with MSG_PEEK). As if the process had been stopped there.
    private static let shim = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <stdlib.h>
        #include <sys/socket.h>
        #include <unistd.h>
        ssize_t recv(int socket, void *bytes, size_t size, int flags) {
            ssize_t (*real)(int, void *, size_t, int) = dlsym(RTLD_NEXT, "recv");
            if ((flags & MSG_PEEK) && unlink(getenv("STOP_FILE")) == 0) sleep(4);
            return real(socket, bytes, size, flags);
        }
        """

    @Test func `a token that ended meanwhile does not leave in a head that was already made`() async throws {
        let folder = try TemporaryDirectory()
        let source = try folder.write(Self.shim, to: "stop.c")
        let library = folder.path(of: "stop.so")
        try await ChildProcess.output(of: ["cc", "-shared", "-fPIC", "-o", library, source])
        let stop = folder.path(of: "stop")

        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { _, number in
            .token("T\(number + 1)", expiresIn: number == 0 ? "3" : "3600")
        }
        let proxy = try await RunningProxy(
            to: origin, tokenEndpoint: endpoint, environment: ["LD_PRELOAD": library, "STOP_FILE": stop])
        #expect(try await proxy.get("http://api.test/1").status == 200)
        try folder.write("", to: "stop")
        #expect(try await proxy.get("http://api.test/2").status == 200)
        #expect(!FileManager.default.fileExists(atPath: stop), "the proxy did not look at the connection")
        #expect(origin.requests.map { $0.fields.value("Authorization") } == ["Bearer T1", "Bearer T2"])
    }
}
