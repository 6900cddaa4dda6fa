import Foundation
import TestSupport
import Testing

@Suite("tokens that outlive the process", .timeLimit(.minutes(3)))
struct StoreTests {
    /// `FOLDER` is the proxy's own; the store's things lie elsewhere, so that the next process finds them.
    private static func store(in folder: TemporaryDirectory) -> String {
        "store: {kind: file, directory: \(folder.path)/state, key: {file: \(folder.path)/store.key}}"
    }

    /// The file of the client's record.
    private static func record(in state: String) throws -> String {
        let files = try FileManager.default.contentsOfDirectory(atPath: state)
        return try #require(files.first { $0.hasPrefix("api-") && $0.hasSuffix(".token") }, "\(files)")
    }

    private func keygen(_ folder: TemporaryDirectory) async throws -> ChildProcess {
        try await RunningProxy.run(["keygen", "--output", folder.path(of: "store.key")])
    }

    @Test func `the next run uses the token of the last one, and asks for none`() async throws {
        let folder = try TemporaryDirectory()
        #expect(try await keygen(folder).ending == .exited(0))
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { _, number in
            .token("token-number-\(number + 1)", refreshToken: "R\(number + 1)")
        }
        let configuration = ProxyConfiguration(
            tokenEndpoint: endpoint.url, upstreams: ProxyConfiguration.upstream(url: origin.url),
            more: Self.store(in: folder))
        for _ in 0..<2 {
            let proxy = try await RunningProxy(configuration)
            #expect(try await proxy.get("http://api.test/").status == 200)
            #expect(try await proxy.terminate() == .exited(0))
        }
        // Not even SIGKILL loses a token in use.
        let killed = try await RunningProxy(configuration)
        #expect(try await killed.get("http://api.test/").status == 200)
        killed.process.signal(9)
        try await killed.process.ended()
        let proxy = try await RunningProxy(configuration)
        #expect(try await proxy.get("http://api.test/").status == 200)
        // The log is written a moment later.
        try await eventually("the log names the store") { proxy.log.contains("source=store") }
        let sent = origin.requests.map { $0.fields.value("Authorization") }
        #expect(sent == Array(repeating: "Bearer token-number-1", count: 4))
        #expect(endpoint.requests.count == 1)
        let text = String(
            decoding: try Data(contentsOf: folder.url("state/\(try Self.record(in: folder.path(of: "state")))")),
            as: UTF8.self)
        #expect(!text.contains("token-number"))
    }

    @Test func `a refresh token goes only to the server and client_id that it was issued by and for`() async throws {
        let folder = try TemporaryDirectory()
        _ = try await keygen(folder)
        let origin = try RecordingOrigin()
        func server(_ name: String) throws -> TokenEndpoint {
            try TokenEndpoint { _, number in
                .token("\(name)-T\(number)", expiresIn: "2", refreshToken: "\(name)-R\(number)")
            }
        }
        let (old, new) = (try server("old"), try server("new"))
        func use(_ endpoint: TokenEndpoint, id: String = "the-tests") async throws -> String {
            let proxy = try await RunningProxy(
                ProxyConfiguration(
                    tokenEndpoint: endpoint.url, client: "client_id: \(id)\nclient_secret: {file: FOLDER/secret}",
                    upstreams: ProxyConfiguration.upstream(url: origin.url), more: Self.store(in: folder)))
            #expect(try await proxy.get("http://api.test/").status == 200)
            #expect(try await proxy.terminate() == .exited(0))
            return proxy.log
        }
        #expect(try await !use(old).contains("belongs to another token endpoint"))
        // A roll-out with another server, and one with another client_id.
        #expect(try await use(new).contains("belongs to another token endpoint"))
        #expect(try await use(old, id: "somebody-else").contains("belongs to another token endpoint"))
        #expect(new.requests.allSatisfy { $0["refresh_token"]?.hasPrefix("old") != true }, "\(new.requests)")
        let login = "Basic " + "somebody-else:\(ProxyConfiguration.secret)".base64
        let others = old.requests.filter { $0.field("Authorization") == login }
        #expect(!others.isEmpty)
        #expect(others.first?["refresh_token"] == nil)
        // The roll-out is taken back: the first record is still there.
        let before = old.requests.count
        #expect(try await !use(old).contains("belongs to another token endpoint"))
        #expect(old.requests.dropFirst(before).allSatisfy { $0["refresh_token"] != nil }, "\(old.requests)")
    }

    @Test func `SIGTERM in the middle of a refresh loses no refresh token`() async throws {
        let folder = try TemporaryDirectory()
        _ = try await keygen(folder)
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { request, number in
            let answer = TokenEndpointAnswer.token("T\(number)", expiresIn: "2", refreshToken: "R\(number)")
            return number == 1 ? answer.delayed(.seconds(1)) : answer
        }
        let configuration = ProxyConfiguration(
            tokenEndpoint: endpoint.url, upstreams: ProxyConfiguration.upstream(url: origin.url),
            more: Self.store(in: folder))
        let proxy = try await RunningProxy(configuration)
        // Its use is what makes it refreshed.
        #expect(try await proxy.get("http://api.test/").status == 200)
        _ = try await endpoint.requests(2)
        #expect(try await proxy.terminate() == .exited(0))
        let next = try await RunningProxy(configuration)
        #expect(try await next.get("http://api.test/").status == 200)
        let sent = endpoint.requests.map { $0["refresh_token"] }
        #expect(sent.prefix(2) == [nil, "R0"])
        #expect(sent.dropFirst(2).allSatisfy { $0 != nil && $0 != "R0" }, "\(sent)")
    }

    @Test func `a store that others may read stops the start, and a disk in trouble does not`() async throws {
        let folder = try TemporaryDirectory()
        _ = try await keygen(folder)
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint([.token("T1")])
        let configuration = ProxyConfiguration(
            tokenEndpoint: endpoint.url, upstreams: ProxyConfiguration.upstream(url: origin.url),
            more: Self.store(in: folder))
        let first = try await RunningProxy(configuration)
        #expect(try await first.get("http://api.test/").status == 200)
        #expect(try await first.terminate() == .exited(0))

        // The new record would be written to where a directory is.
        let state = folder.path(of: "state")
        let record = try Self.record(in: state)
        try FileManager.default.createDirectory(atPath: "\(state)/\(record).new", withIntermediateDirectories: false)
        try FileManager.default.removeItem(atPath: "\(state)/\(record)")
        let second = try await RunningProxy(configuration)
        #expect(try await second.get("http://api.test/").status == 200)
        try await eventually("the log says so") { second.log.contains("the token store can't be used") }
        try FileManager.default.removeItem(atPath: "\(state)/\(record).new")
        try await eventually("it is saved when it can be", within: .seconds(60)) {
            second.log.contains("the token store works again")
        }
        #expect(FileManager.default.fileExists(atPath: "\(state)/\(record)"))
        #expect(try await second.terminate() == .exited(0))

        try FileManager.default.setAttributes([.posixPermissions: 0o750], ofItemAtPath: state)
        let failure = await #expect(throws: TestFailure.self) { _ = try await RunningProxy(configuration) }
        #expect(failure?.description.contains("is open to other users (mode 750): `chmod 700` it") == true)
        #expect(failure?.description.contains("exited(78)") == true)
    }

    private static let seeded = "grant_type: refresh_token\nrefresh_token: {file: FOLDER/seed}"

    /// Has the running proxy get a new token, and so a new refresh token.
    private func refresh(_ proxy: RunningProxy, isSaved: Bool = true) async throws {
        let run = try await RunningProxy.run(["refresh", "api", "--socket", proxy.directory.path + "/admin.sock"])
        #expect(run.ending == .exited(isSaved ? 0 : 1), "\(run.transcript)")
        #expect((run.output + run.errors).contains("The token is not in the store") == !isSaved, "\(run.transcript)")
    }

    private func expectLoss(_ proxy: RunningProxy) async throws {
        #expect(try await proxy.terminate() == .exited(1), "\(proxy.log)")
        let last = try #require(proxy.log.split(separator: "\n").last)
        #expect(last.contains(" error the newest refresh token is lost: it could not be saved client=api "), "\(last)")
        #expect(last.contains(" what_to_do=") && last.contains("write a new refresh token to the source of"), "\(last)")
        #expect(last.contains(" reason="), "\(last)")
    }

    @Test func `a stop says last which refresh token it loses, and what to do`() async throws {
        let folder = try TemporaryDirectory()
        _ = try await keygen(folder)
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { _, number in .token("T\(number)", refreshToken: "R\(number + 1)") }
        let configuration = ProxyConfiguration(
            tokenEndpoint: endpoint.url, client: Self.seeded, admin: "",
            upstreams: ProxyConfiguration.upstream(url: origin.url), more: Self.store(in: folder),
            files: ["seed": "R0"])
        let proxy = try await RunningProxy(configuration)
        #expect(try await proxy.get("http://api.test/").status == 200)
        let state = folder.path(of: "state")
        // The new record would be written to where a directory is.
        let obstacle = "\(state)/\(try Self.record(in: state)).new"
        try FileManager.default.createDirectory(atPath: obstacle, withIntermediateDirectories: false)
        for _ in 0..<2 { try await refresh(proxy, isSaved: false) }
        #expect(proxy.log.ranges(of: "the token store can't be used").count == 1, "\(proxy.log)")
        try await expectLoss(proxy)
        // A proxy that can save loses nothing, and says nothing.
        try FileManager.default.removeItem(atPath: obstacle)
        let next = try await RunningProxy(configuration)
        try await refresh(next)
        #expect(try await next.terminate() == .exited(0))
        #expect(next.log.hasSuffix(" info stopped\n"), "\(next.log)")
    }

    @Test(.enabled(if: geteuid() == 0, "needs root"))
    func `no start after a full disk presents a refresh token that is used up`() async throws {
        let folder = try TemporaryDirectory()
        _ = try await keygen(folder)
        let origin = try RecordingOrigin()
        let endpoint = try TokenEndpoint { _, number in .token("T\(number)", refreshToken: "R\(number + 1)") }
        let configuration = ProxyConfiguration(
            tokenEndpoint: endpoint.url, client: Self.seeded, admin: "",
            upstreams: ProxyConfiguration.upstream(url: origin.url), more: Self.store(in: folder),
            files: ["seed": "R0"])
        let state = folder.path(of: "state")
        try FileManager.default.createDirectory(
            atPath: state, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        try await ChildProcess.output(of: ["mount", "-t", "tmpfs", "-o", "size=64k,mode=700", "tmpfs", state])
        defer { unmount(state) }
        let proxy = try await RunningProxy(configuration)
        #expect(try await proxy.get("http://api.test/").status == 200)
        _ = try await ChildProcess.run(["dd", "if=/dev/zero", "of=\(state)/filler", "bs=4096"])
        try await refresh(proxy, isSaved: false)
        // The new record has taken the old one's place, so nothing is lost.
        #expect(try await proxy.terminate() == .exited(0), "\(proxy.log)")
        #expect(!proxy.log.contains("the newest refresh token is lost"), "\(proxy.log)")
        let next = try await RunningProxy(configuration)
        try await refresh(next, isSaved: false)
        next.process.kill()
        let sent = endpoint.requests.map { $0["refresh_token"] }
        #expect(sent == ["R0", "R1", "R2"])
    }

    private func unmount(_ path: String) {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/bin/umount")
        process.arguments = ["--lazy", path]
        try? process.run()
        process.waitUntilExit()
    }

    @Test func `keygen makes keys of 32 bytes, each another, and replaces none`() async throws {
        let folder = try TemporaryDirectory()
        var keys: Set<String> = []
        for _ in 0..<3 {
            let text = try await ChildProcess.output(of: [try Repository.executable(), "keygen"])
            #expect(text.hasSuffix("\n"))
            let key = text.dropLast()
            #expect(Data(base64Encoded: String(key))?.count == 32)
            keys.insert(String(key))
        }
        #expect(keys.count == 3)
        #expect(try await keygen(folder).ending == .exited(0))
        let key = try folder.read("store.key")
        let again = try await keygen(folder)
        #expect(again.ending == .exited(1))
        #expect(again.errors.contains("store.key: File exists"))
        #expect(try folder.read("store.key") == key)
        let mode = try FileManager.default.attributesOfItem(atPath: folder.path(of: "store.key"))[.posixPermissions]
        #expect((mode as? NSNumber)?.intValue == 0o600)
    }
}

extension TemporaryDirectory {
    fileprivate func url(_ name: String) -> URL { URL(fileURLWithPath: path(of: name)) }
}
