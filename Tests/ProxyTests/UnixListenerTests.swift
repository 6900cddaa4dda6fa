import Configuration
import Foundation
import Proxy
import Reactor
import TestSupport
import Testing

@Suite("a Unix socket is a way in", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct UnixListenerTests {
    private let folder: TemporaryDirectory
    private let path: String

    init() throws {
        folder = try TemporaryDirectory()
        path = folder.path(of: "h.sock")
    }

    private func proxy(
        mode: UInt16? = nil, threads: Int = 1, isLogged: Bool = false
    ) async throws -> ProxyInProcess {
        let path = path
        return try await ProxyInProcess(
            threads: threads, isLogged: isLogged, change: { $0.proxy.listen.append(.unix(path: path, mode: mode)) })
    }

    private func permissions() throws -> Int {
        try #require(try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int)
    }

    @Test func `curl gets its signed answer through a Unix socket, and the log says who called`() async throws {
        let proxy = try await proxy(isLogged: true)
        let curl = try await ChildProcess.run(
            ["curl", "-sS", "--max-time", "20", "--unix-socket", path, "http://api.test/x"])
        #expect(curl.output == "ok", "\(curl.transcript)")
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"]])
        _ = try await proxy.request()
        try await eventually("two lines") { proxy.log.all.count == 2 }
        let peer = try #require(proxy.log.all[0].peer)
        #expect(peer.user == getuid() && peer.group == getgid() && peer.process == curl.pid)
        #expect(proxy.log.all[1].peer == nil)
    }

    @Test func `a Unix socket is its owner's alone, unless a mode says otherwise`() async throws {
        _ = try await proxy()
        #expect(try permissions() == 0o600)
    }

    @Test(arguments: [UInt16(0o660), 0o666, 0o777])
    func `a Unix socket has the mode of the configuration, whatever the process's mask`(mode: UInt16) async throws {
        _ = try await proxy(mode: mode)
        #expect(try permissions() == Int(mode))
    }

    @Test func `several loops accept from one Unix socket`() async throws {
        let proxy = try await proxy(threads: 3)
        for _ in 0..<12 {
            let client = try await RawClient.connect(unix: path)
            try await client.send(message())
            #expect(try await client.response().text == "ok")
        }
        #expect(proxy.origin.requests.count == 12)
    }

    @Test func `a Unix socket's file is gone when the proxy stops`() async throws {
        let proxy = try await proxy()
        #expect(FileManager.default.fileExists(atPath: path))
        await proxy.server.drain(within: .zero)
        #expect(!FileManager.default.fileExists(atPath: path))
    }

    @Test func `a file that another process put in the socket's place stays`() async throws {
        let proxy = try await proxy()
        try FileManager.default.removeItem(atPath: path)
        try folder.write("mine", to: "h.sock")
        await proxy.server.drain(within: .zero)
        #expect(try folder.read("h.sock") == "mine")
    }

    @Test func `the socket file of a dead process is replaced`() async throws {
        let script = "import socket,sys; s=socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen()"
        try await ChildProcess.output(of: ["python3", "-c", script, path])
        #expect(FileManager.default.fileExists(atPath: path))
        _ = try await proxy()
        let client = try await RawClient.connect(unix: path)
        try await client.send(message())
        #expect(try await client.response().text == "ok")
    }

    @Test func `the socket file of a living process is not replaced`() async throws {
        let first = try await proxy()
        await #expect {
            _ = try await proxy()
        } throws: {
            "\($0)".contains("the address is in use")
        }
        let client = try await RawClient.connect(unix: path)
        try await client.send(message())
        #expect(try await client.response().text == "ok")
        #expect(first.origin.requests.count == 1)
    }

    @Test func `a file that is no socket is not replaced`() async throws {
        try folder.write("precious", to: "h.sock")
        await #expect {
            _ = try await proxy()
        } throws: {
            "\($0)".contains("there is a file that is no socket")
        }
        #expect(try folder.read("h.sock") == "precious")
    }

    @Test func `a folder of a socket that is not there is named in the error`() async throws {
        let missing = folder.path(of: "none/h.sock")
        await #expect {
            _ = try await ProxyInProcess(change: { $0.proxy.listen.append(.unix(path: missing, mode: nil)) })
        } throws: {
            "\($0)".contains(missing) && "\($0)".contains("no such folder")
        }
    }

    @Test func `an upstream's own listener can be a Unix socket`() async throws {
        let path = path
        let proxy = try await ProxyInProcess(change: { $0.upstreams[0].listen = .unix(path: path, mode: nil) })
        let curl = try await ChildProcess.run(
            ["curl", "-sS", "--max-time", "20", "--unix-socket", path, "http://localhost/x"])
        #expect(curl.output == "ok", "\(curl.transcript)")
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"]])
        let foreign = try await ChildProcess.run(
            ["curl", "-sS", "--max-time", "20", "--unix-socket", path, "http://other.test/x"])
        #expect(foreign.output.contains("foreign-host"), "\(foreign.transcript)")
    }
}
