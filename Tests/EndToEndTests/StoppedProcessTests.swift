import Foundation
import Synchronization
import TestSupport
import Testing

@Suite("a process that was stopped looks at the clock before it sends", .timeLimit(.minutes(1)))
struct StoppedProcessTests {
    /// Sleeps, once, in the proxy's last system call before a head goes out, as if the process had been stopped there: the
    /// look at a kept connection, ours (recv(2) with MSG_PEEK) or libcurl's (poll(2)).
    private static let shim = """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <netinet/in.h>
        #include <poll.h>
        #include <stdlib.h>
        #include <sys/socket.h>
        #include <unistd.h>
        int poll(struct pollfd *sockets, nfds_t count, int timeout) {
            int (*real)(struct pollfd *, nfds_t, int) = dlsym(RTLD_NEXT, "poll");
            char *file = getenv("STOP_TOKEN_REQUEST");
            struct sockaddr_in peer = {0};
            socklen_t size = sizeof peer;
            if (file && count == 1 && timeout == 0 && getpeername(sockets->fd, (struct sockaddr *)&peer, &size) == 0
                && ntohs(peer.sin_port) == atoi(getenv("TOKEN_PORT")) && unlink(file) == 0) sleep(4);
            return real(sockets, count, timeout);
        }
        ssize_t recv(int socket, void *bytes, size_t size, int flags) {
            ssize_t (*real)(int, void *, size_t, int) = dlsym(RTLD_NEXT, "recv");
            char *file = getenv("STOP_KEPT");
            if (file && (flags & MSG_PEEK) && unlink(file) == 0) sleep(4);
            return real(socket, bytes, size, flags);
        }
        """

    /// Each look at the wall clock's seconds, which libcurl takes for the age of an address, is a second later.
    private static let hurry = """
        #include <stdatomic.h>
        #include <time.h>
        time_t time(time_t *result) {
            static atomic_int looks;
            struct timespec now;
            clock_gettime(CLOCK_REALTIME, &now);
            now.tv_sec += atomic_fetch_add(&looks, 1);
            if (result) *result = now.tv_sec;
            return now.tv_sec;
        }
        """

    private func shim(_ folder: TemporaryDirectory, _ text: String = shim) async throws -> String {
        let source = try folder.write(text, to: "stop.c")
        let library = folder.path(of: "stop.so")
        try await ChildProcess.output(of: ["cc", "-shared", "-fPIC", "-o", library, source])
        return library
    }

    @Test func `a token request whose timeout has passed meanwhile is not sent: its lease may have ended`() async throws
    {
        let folder = try TemporaryDirectory()
        let stop = folder.path(of: "stop")
        let endpoint = try TokenEndpoint { _, number in .token("T\(number + 1)") }
        let refusals = Mutex(0)
        let origin = try RecordingOrigin { exchange in
            let isFirst = exchange.head.fields.value("Authorization") == "Bearer T1"
            if isFirst,
                refusals.withLock({
                    $0 += 1; return $0 == 1
                })
            {
                try folder.write("", to: "stop")
            }
            try exchange.respond(isFirst ? 401 : 200)
        }
        let proxy = try await RunningProxy(
            to: origin, client: "timeout: 2s", tokenEndpoint: endpoint,
            environment: [
                "LD_PRELOAD": try await shim(folder), "STOP_TOKEN_REQUEST": stop,
                "TOKEN_PORT": "\(endpoint.url.split(separator: ":")[2].prefix { $0.isNumber })",
            ])
        #expect(try await proxy.get("http://api.test/").status == 401, "no newer token in time")
        #expect(!FileManager.default.fileExists(atPath: stop), "the proxy did not look at the connection")
        // A late request's answer would be thrown away as too late: the token in use would come from a third one.
        try await eventually("the next try") { try await proxy.get("http://api.test/").status == 200 }
        #expect(origin.requests.last?.fields.value("Authorization") == "Bearer T2")
        #expect(endpoint.requests.count == 2)
    }

    @Test func `an address just looked up serves, although a second ends before it is used`() async throws {
        let folder = try TemporaryDirectory()
        let origin = try RecordingOrigin { try $0.respond(fields: [("Connection", "close")]) }
        let proxy = try await RunningProxy(
            to: origin.url.replacing("127.0.0.1", with: "localhost"),
            environment: ["LD_PRELOAD": try await shim(folder, Self.hurry)])
        for _ in 0..<3 { #expect(try await proxy.get("http://api.test/").status == 200) }
    }

    @Test func `a token that ended meanwhile does not leave in a head that was already made`() async throws {
        let folder = try TemporaryDirectory()
        let stop = folder.path(of: "stop")
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { _, number in
            .token("T\(number + 1)", expiresIn: number == 0 ? "3" : "3600")
        }
        let proxy = try await RunningProxy(
            to: origin, tokenEndpoint: endpoint, environment: ["LD_PRELOAD": try await shim(folder), "STOP_KEPT": stop])
        #expect(try await proxy.get("http://api.test/1").status == 200)
        try folder.write("", to: "stop")
        #expect(try await proxy.get("http://api.test/2").status == 200)
        #expect(!FileManager.default.fileExists(atPath: stop), "the proxy did not look at the connection")
        #expect(origin.requests.map { $0.fields.value("Authorization") } == ["Bearer T1", "Bearer T2"])
    }
}
