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

    @Test func `only its owner may open it, and it is gone with the proxy`() async throws {
        let admin = try await AdministeredProxy()
        #expect(try mode(admin.socket) == 0o600)
        #expect(try await admin.proxy.terminate() == .exited(0))
        #expect(!FileManager.default.fileExists(atPath: admin.socket))
    }

    @Test func `by default it is in the user's own runtime folder, else in a folder of the user's in /tmp`()
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
            AdminSocket.defaultPath(port: 8081, runtimeDirectory: nil)
                == "/tmp/heimdallr-proxy-\(geteuid())/heimdallr-proxy-8081.sock")
        // A runtime folder that others may enter is none.
        _ = unsafe chmod(runtime.path, 0o755)
        #expect(AdminSocket.defaultPath(port: 1, runtimeDirectory: runtime.path).hasPrefix("/tmp/heimdallr-proxy-"))
        #expect(AdminSocket.defaultPath(port: 1, runtimeDirectory: "relative").hasPrefix("/tmp/heimdallr-proxy-"))
        _ = unsafe chmod(runtime.path, 0o700)
        #expect(AdminSocket.defaultPath(port: 1, runtimeDirectory: runtime.path).hasPrefix(runtime.path))
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
        try await eventuallyReady(other)
        #expect(try await one.run("status").output.contains("has a valid token"))
        #expect(try await other.run("status").output.contains("has no token"))
        #expect(try await one.proxy.terminate() == .exited(0))
        #expect(try await other.run("status").ending == .exited(0))
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
        #expect(refused.errors.contains("there is a file of that name that is no socket"))
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
        #expect(missing.errors.contains("no `admin` section"))
        let wrong = try directory.write("admin: {listen: nonsense}", to: "wrong.yaml")
        #expect(try await RunningProxy.run(["status", "--config", wrong]).ending == .exited(78))
        #expect(try await RunningProxy.run(["logout"]).ending == .exited(2))
    }
}
