import Foundation
import Glibc
import TestSupport
import Testing

@testable import Administration

@Suite("the admin socket", .timeLimit(.minutes(2)))
struct SocketTests {
    private func mode(_ path: String) throws -> Int {
        let attributes = try FileManager.default.attributesOfItem(atPath: path)
        return (attributes[.posixPermissions] as? Int ?? -1) & 0o777
    }

    @Test func `the admin socket can be opened by its owner only, and is gone with the proxy`() async throws {
        let admin = try await AdministeredProxy()
        #expect(try mode(admin.socket) == 0o600)
        #expect(try await admin.proxy.terminate() == .exited(0))
        #expect(!FileManager.default.fileExists(atPath: admin.socket))
    }

    @Test func `the admin socket is in the user's runtime folder by default, else in one of theirs in /tmp`()
        async throws
    {
        let runtime = try TemporaryDirectory()
        let configuration = """
            proxy: {listen: "127.0.0.1:0"}
            admin: {listen: "127.0.0.1:0"}
            """
        let proxy = try await RunningProxy(configuration, environment: ["XDG_RUNTIME_DIR": runtime.path])
        let socket = runtime.path(of: "heimdallr-proxy-0.sock")
        try await eventually("the socket is there") { FileManager.default.fileExists(atPath: socket) }
        let file = proxy.directory.path(of: "config.yaml")
        let found = try await RunningProxy.run(
            ["status", "--config", file], environment: ["XDG_RUNTIME_DIR": runtime.path])
        #expect(found.ending == .exited(0))
        #expect(found.output.contains("There are no clients."))

        #expect(
            AdminSocket.candidates(port: 8081, runtimeDirectory: nil).first
                == "/tmp/heimdallr-proxy-\(geteuid())/heimdallr-proxy-8081.sock")
        // A runtime folder open to other users is not used.
        _ = unsafe chmod(runtime.path, 0o755)
        func usual(_ folder: String) throws -> String {
            try #require(AdminSocket.candidates(port: 1, runtimeDirectory: folder).first)
        }
        #expect(try usual(runtime.path).hasPrefix("/tmp/heimdallr-proxy-"))
        #expect(try usual("relative").hasPrefix("/tmp/heimdallr-proxy-"))
        _ = unsafe chmod(runtime.path, 0o700)
        #expect(try usual(runtime.path).hasPrefix(runtime.path))
        #expect(AdminSocket.folderFault(socket) == "it is not a folder")
        #expect(AdminSocket.folderFault(runtime.path + "/none") == "it does not exist")
        let link = runtime.path + "/link"
        _ = unsafe symlink(runtime.path, link)
        #expect(AdminSocket.folderFault(link) == "it is not a folder")
        if geteuid() == 0 {
            _ = unsafe chown(runtime.path, 65534, 65534)
            #expect(AdminSocket.folderFault(runtime.path) == "it belongs to another user")
            _ = unsafe chown(runtime.path, 0, 0)
        }
    }

    @Test func `two proxies with two admin ports do not meet`() async throws {
        let one = try await AdministeredProxy()
        let other = try await AdministeredProxy(TokenEndpoint([.error("invalid_client", status: 401)]))
        try await one.ready()
        try await other.answersReady()
        #expect(try await one.run("status").output.contains("has a valid token"))
        #expect(try await other.run("status").output.contains("has no token"))
        #expect(try await one.proxy.terminate() == .exited(0))
        #expect(try await other.run("status", "--exit-zero").ending == .exited(0))
    }

    @Test func `a live proxy's socket and port are not taken, and its file stays`() async throws {
        let live = try await AdministeredProxy()
        let directory = try TemporaryDirectory()
        for (socket, port) in [(live.socket, UInt16(0)), (directory.path(of: "b.sock"), live.adminPort)] {
            let file = try directory.write(
                "proxy: {listen: \"127.0.0.1:0\"}\nadmin: {listen: \"127.0.0.1:\(port)\", socket: \(socket)}",
                to: "c.yaml")
            let second = try await RunningProxy.run(["serve", "--config", file])
            #expect(second.ending == .exited(1))
            #expect(second.errors.contains(port == 0 ? "another process listens on it" : "the address is in use"))
            #expect(!FileManager.default.fileExists(atPath: directory.path(of: "b.sock")))
        }
        #expect(try await live.run("status").ending == .exited(0))
        #expect(try await live.get("/livez").status == 200)
    }

    @Test func `a dead proxy's socket is replaced; no other file is`() async throws {
        let directory = try TemporaryDirectory()
        let socket = directory.path(of: "a.sock")
        let endpoint = try TokenEndpoint([.token(accessToken)])
        let first = try await AdministeredProxy(endpoint, socket: socket)
        first.proxy.process.kill()
        _ = try await first.proxy.process.ended()
        #expect(FileManager.default.fileExists(atPath: socket))
        let nobody = try await first.run("status")
        #expect(nobody.ending == .exited(1))
        #expect(nobody.errors.contains("no running proxy answers at \(socket)"))
        let second = try await AdministeredProxy(endpoint, socket: socket)
        #expect(try await second.run("status").ending == .exited(0))

        let file = try directory.write("precious", to: "file")
        let config = try directory.write(
            "proxy: {listen: \"127.0.0.1:0\"}\nadmin: {listen: \"127.0.0.1:0\", socket: \(file)}", to: "c.yaml")
        let refused = try await RunningProxy.run(["serve", "--config", config])
        #expect(refused.ending == .exited(1))
        #expect(refused.errors.contains("a file of that name exists and is not a socket"))
        #expect(try directory.read("file") == "precious")
    }

    @Test func `a socket that another proxy has put in its place is left alone`() async throws {
        let admin = try await AdministeredProxy()
        try await admin.ready()
        try FileManager.default.removeItem(atPath: admin.socket)
        #expect(FileManager.default.createFile(atPath: admin.socket, contents: Data("other".utf8)))
        #expect(try await admin.proxy.terminate() == .exited(0))
        #expect(FileManager.default.fileExists(atPath: admin.socket))
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to be somebody else"))
    func `another user is turned away, even where the file's mode would let them in`() async throws {
        let admin = try await AdministeredProxy()
        _ = unsafe chmod(admin.socket, 0o666)
        _ = unsafe chmod(admin.proxy.directory.path, 0o755)
        let curl = ["curl", "-sS", "--max-time", "10", "--unix-socket", admin.socket, "http://x/status"]
        let own = try await ChildProcess.run(curl)
        #expect(own.output.contains("\"clients\""))
        let other = try await ChildProcess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] + curl)
        #expect(other.ending != .exited(0))
        #expect(other.output.isEmpty)
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to be somebody else"))
    func `nothing is sent to a stranger who listens at the socket's path`() async throws {
        let directory = try TemporaryDirectory()
        _ = unsafe chmod(directory.path, 0o755)
        // Writes down all that it is sent.
        let script = #"""
            import os, socket, sys
            s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1])
            os.chmod(sys.argv[1], 0o666)
            if len(sys.argv) > 2: os.setuid(65534)
            s.listen()
            print("up", flush=True)
            while True:
                c, _ = s.accept(); c.settimeout(5)
                try:
                    got = c.recv(4096)
                except OSError: got = b""
                print("got", len(got), flush=True)
                c.close()
            """#
        func stranger(_ name: String, _ more: String...) throws -> ChildProcess {
            try ChildProcess(["python3", "-c", script, directory.path(of: name)] + more)
        }
        let foreign = try stranger("a.sock", "drop")
        defer { foreign.kill() }
        try await eventually("it listens") { foreign.output.contains("up") || foreign.ending != nil }
        for verb in [
            ["login", "api"], ["status"], ["token", "api"], ["logout", "api"], ["why", "GET", "http://x/"],
        ] {
            let run = try await RunningProxy.run(verb + ["--socket", directory.path(of: "a.sock")])
            #expect(run.ending == .exited(1), "\(run.transcript)")
            #expect(run.errors.contains("user 65534 listens there, not user 0 or root"), "\(run.errors)")
            #expect(run.errors.contains("nothing was sent to it"))
            #expect(run.output.isEmpty)
        }
        #expect(foreign.output.firstMatch(of: /got [1-9]/) == nil, "\(foreign.output)")

        // Our own process, in folders where somebody else may put another in its place.
        let own = try stranger("b.sock")
        defer { own.kill() }
        try await eventually("it listens") { own.output.contains("up") || own.ending != nil }
        for (mode, user) in [(0o777, 0), (0o1777, 0), (0o775, 0), (0o755, 65534)] as [(mode_t, uid_t)] {
            _ = unsafe chmod(directory.path, mode)
            _ = unsafe chown(directory.path, user, gid_t(user))
            let run = try await RunningProxy.run(["status", "--socket", directory.path(of: "b.sock")])
            #expect(run.ending == .exited(1), "\(run.transcript)")
            #expect(
                run.errors.contains(user == 0 ? "others may write into its folder" : "its folder"), "\(run.errors)")
        }
        #expect(own.output.firstMatch(of: /got [1-9]/) == nil, "\(own.output)")
        _ = unsafe chown(directory.path, 0, 0)
        _ = unsafe chmod(directory.path, 0o755)
        _ = try await RunningProxy.run(["status", "--socket", directory.path(of: "b.sock")])
        try await eventually("it is asked") { own.output.firstMatch(of: /got [1-9]/) != nil }
    }

    @Test(.enabled(if: geteuid() == 0, "needs root to be somebody else"))
    func `somebody else's folder in the socket's usual place stops nobody, and status finds the other`() async throws {
        let user = "54\(Int.random(in: 100...999))"
        let usual = "/tmp/heimdallr-proxy-\(user)"
        try FileManager.default.createDirectory(atPath: usual, withIntermediateDirectories: false)
        defer {
            for name in (try? FileManager.default.contentsOfDirectory(atPath: "/tmp")) ?? []
            where name.hasPrefix("heimdallr-proxy-\(user)") {
                try? FileManager.default.removeItem(atPath: "/tmp/" + name)
            }
        }
        let directory = try TemporaryDirectory()
        _ = unsafe chmod(directory.path, 0o755)
        let file = try directory.write(
            "proxy: {listen: \"127.0.0.1:0\"}\nadmin: {listen: \"127.0.0.1:0\"}", to: "config.yaml")
        _ = unsafe chmod(file, 0o644)
        // No other user may read its build folder.
        let program = directory.path(of: "heimdallr-proxy")
        try await ChildProcess.output(of: ["cp", try Repository.executable(), program])
        let other = ["setpriv", "--reuid=\(user)", "--regid=\(user)", "--clear-groups", program]
        let environment: [String: String?] = ["XDG_RUNTIME_DIR": nil]
        for _ in 0..<2 {
            let proxy = try ChildProcess(other + ["serve", "--config", file], environment: environment)
            defer { proxy.kill() }
            try await eventually("it runs or ends") {
                proxy.errors.contains(" info administration ") || proxy.ending != nil
            }
            #expect(proxy.errors.contains("\(usual) can't be used: it belongs to another user"), "\(proxy.transcript)")
            #expect(proxy.errors.contains("the command line finds it"))
            let status = try await ChildProcess.run(other + ["status", "--config", file], environment: environment)
            #expect(status.ending == .exited(0), "\(status.transcript)")
            #expect(status.errors.contains("warning: \(usual) is not used: it belongs to another user"))
            proxy.signal(SIGTERM)
            #expect(try await proxy.ended() == .exited(0))
        }
        // The one that was made is used again.
        let made = try FileManager.default.contentsOfDirectory(atPath: "/tmp").filter {
            $0.hasPrefix("heimdallr-proxy-\(user)-")
        }
        #expect(made.count == 1)
        #expect(try mode("/tmp/" + (made.first ?? "")) == 0o700)
    }

    @Test
    func `a folder, a file or a link in the usual place is passed over, and only folders of ours are looked into`()
        throws
    {
        let base = try TemporaryDirectory()
        let usual = base.path(of: "heimdallr-proxy-\(geteuid())")
        func prepare() throws -> (path: String, passedOver: String?) {
            try AdminSocket.prepareDefault(port: 1, runtimeDirectory: nil, base: base.path)
        }
        func found() -> [String] { AdminSocket.candidates(port: 1, runtimeDirectory: nil, base: base.path) }
        #expect(found() == [usual + "/heimdallr-proxy-1.sock"])
        #expect(try prepare() == (usual + "/heimdallr-proxy-1.sock", nil))
        _ = unsafe chmod(usual, 0o755)
        let (path, reason) = try prepare()
        #expect(path.hasPrefix(usual + "-") && path.hasSuffix("/heimdallr-proxy-1.sock"))
        #expect(reason == "\(usual) can't be used: others may enter it")
        #expect(found() == [path])
        #expect(try prepare() == (path, reason))
        try FileManager.default.removeItem(atPath: usual)
        _ = unsafe symlink(base.path, usual)
        #expect(try prepare().path == path)
        try FileManager.default.removeItem(atPath: usual)
        _ = try base.write("", to: "heimdallr-proxy-\(geteuid())")
        _ = try base.write("", to: "heimdallr-proxy-\(geteuid())-file")
        #expect(try prepare() == (path, "\(usual) can't be used: it is not a folder"))
        #expect(found() == [path])
        _ = unsafe chmod(String(path.prefix(path.utf8.count - "/heimdallr-proxy-1.sock".utf8.count)), 0o750)
        #expect(found() == [])
    }

    @Test func `the command line finds the socket without the configuration's secrets`() async throws {
        let admin = try await AdministeredProxy()
        let directory = try TemporaryDirectory()
        let file = try directory.write(
            """
            admin: {socket: \(admin.socket), token: {env: NOT_SET_HERE}}
            clients: {api: {client_secret: {file: /nowhere}}}
            """, to: "config.yaml")
        #expect(try await RunningProxy.run(["status", "--config", file]).ending == .exited(0))
        #expect(try await RunningProxy.run(["status"], directory: directory.path).ending == .exited(0))

        let without = try directory.write("upstreams: []", to: "without.yaml")
        let missing = try await RunningProxy.run(["status", "--config", without])
        #expect(missing.ending == .exited(1))
        #expect(missing.errors.contains("no admin section"))
        let wrong = try directory.write("admin: {listen: nonsense}", to: "wrong.yaml")
        #expect(try await RunningProxy.run(["status", "--config", wrong]).ending == .exited(78))
        #expect(try await RunningProxy.run(["logout"]).ending == .exited(2))
    }
}
