import CurlTransport
import Foundation
import HTTPMessage
@testable import Reactor
import Synchronization
import TestSupport
import Testing

@Suite("names are looked up beside the loop, and judged before they are dialled", .timeLimit(.minutes(1)))
struct NameTests {
    /// A name server of the test: its names, the queries, and the names whose look-ups hang.
    private final class Names: Sendable {
        private let known: [String: [String]]
        private let hanging: Set<String>
        private let log = Mutex<[String]>([])
        /// Opened at a test's end, for the look-ups of names that hang.
        let gate = Gate()
        var asked: [String] { log.withLock { $0 } }

        init(_ known: [String: [String]], hanging: Set<String> = []) {
            self.known = known
            self.hanging = hanging
        }

        func lookUp(_ name: String) -> NameAnswer {
            log.withLock { $0.append(name) }
            if hanging.contains(name) { gate.wait() }
            guard let found = known[name] else { return .failure(NameError("could not resolve host \(name)")) }
            return .success(found.compactMap { NumericAddress($0) })
        }
    }

    private func pool(
        _ names: Names, _ change: @Sendable @escaping (inout PoolOptions) -> Void = { _ in }
    ) throws -> Calls {
        let resolver = NameResolver(lookUp: names.lookUp)
        return try Calls {
            $0.names = resolver
            change(&$0)
        }
    }

    @Test func `a connection that is kept costs no look-up`() async throws {
        let origin = try RecordingOrigin()
        let names = Names(["api.test": ["127.0.0.1"]])
        let resolver = NameResolver(lookUp: names.lookUp)
        let carriers = try await CarrierPoolOnLoop { $0.names = resolver }
        for _ in 0..<20 {
            let user = try await carriers.exchange(.plain(origin.port, host: "api.test"))
            #expect(user.record.text.hasSuffix("ok"))
        }
        #expect(names.asked == ["api.test"])
        #expect(origin.connections.count == 1)
    }

    @Test func `calls that come at once share one look-up`() async throws {
        let origin = try RecordingOrigin()
        let names = Names(["api.test": ["127.0.0.1"]])
        let pool = try pool(names)
        let request = Request(.plain(origin.port, host: "API.test"))
        try await withThrowingTaskGroup(of: TransportError?.self) { group in
            for _ in 0..<20 { group.addTask { try await pool.send(request).error } }
            for try await error in group { #expect(error == nil) }
        }
        #expect(names.asked == ["api.test"])
    }

    @Test func `a name that hangs ends by the connect timeout, and holds nobody up`() async throws {
        let origin = try RecordingOrigin()
        let names = Names(["api.test": ["127.0.0.1"]], hanging: ["hang.test"])
        defer { names.gate.open() }
        let pool = try pool(names) { $0.connectTimeout = .seconds(3) }
        let hanging = Task { try await pool.send(Request(.plain(80, host: "hang.test"))) }
        let left = Task { try await pool.send(Request(.plain(80, host: "hang.test"))) }
        #expect(try await pool.send(Request(.plain(origin.port, host: "api.test"))).text == "ok")
        left.cancel()
        #expect(try await left.value.error?.kind == .aborted)
        #expect(try await hanging.value.error?.kind == .nameTimedOut)
        #expect(try await pool.send(Request(.plain(origin.port, host: "api.test"))).text == "ok")
        #expect(Set(names.asked) == ["hang.test", "api.test"])
        #expect(try await pool.rests())
    }

    @Test func `a name that nobody knows is looked up once for several calls`() async throws {
        let names = Names([:])
        let pool = try pool(names)
        for _ in 0..<3 {
            #expect(try await pool.send(Request(.plain(80, host: "none.test"))).error?.kind == .nameNotResolved)
        }
        #expect(names.asked == ["none.test"])
    }

    @Test func `addresses are judged: all denied is told at once, of some the others are dialled`() async throws {
        let origin = try RecordingOrigin()
        let names = Names([
            "inside.test": ["10.0.0.1", "127.0.0.1"], "both.test": ["10.0.0.1", "127.0.0.1"], "own.test": ["127.0.0.1"],
        ])
        let closed = try pool(names) { $0.addressPolicy.publicOnly = true }
        #expect(
            try await closed.send(Request(.plain(origin.port, host: "inside.test"))).error?.kind == .addressDenied)
        let half = try pool(names) {
            $0.addressPolicy.publicOnly = true
            $0.addressPolicy.exceptions = ["127.0.0.0/8"].compactMap { AddressBlock($0) }
        }
        #expect(try await half.send(Request(.plain(origin.port, host: "both.test"))).text == "ok")
        let port = origin.port
        let looping = try pool(names) {
            $0.addressPolicy.own = [SocketAddress(.ipv4(address: 0x7f00_0001, port: port))]
        }
        #expect(try await looping.send(Request(.plain(port, host: "own.test"))).error?.kind == .loop)
        #expect(origin.connections.count == 1)
    }

    @Test func `the second address is tried where the first refuses`() async throws {
        let origin = try RecordingOrigin()
        let names = Names(["two.test": ["127.0.0.77", "127.0.0.1"]])
        #expect(try await pool(names).send(Request(.plain(origin.port, host: "two.test"))).text == "ok")
    }

    @Test(arguments: [false, true])
    func `a certificate's name stays the one that was asked for`(isNamed: Bool) async throws {
        let nginx = try await Nginx.secure(["DNS:api.test"])
        let file = nginx.authority.certificateFile
        let names = Names(["api.test": ["127.0.0.1"], "inside.test": ["127.0.0.1"]])
        let pool = try pool(names) { $0.trustAnchors = .only(file: file) }
        let origin = Origin.secure(
            nginx.httpsPort, host: isNamed ? "inside.test" : "api.test", serverName: isNamed ? "api.test" : nil)
        #expect(try await pool.send(Request(origin)).text.contains("server-name: api.test\n"))
        #expect(names.asked == [isNamed ? "inside.test" : "api.test"])
    }

    @Test func `a next proxy's name is looked up here, its upstreams' names are not`() async throws {
        let next = try RecordingOrigin { try $0.respond(body: "by the way") }
        let names = Names(["next.test": ["127.0.0.1"]])
        let by = "http://next.test:\(next.port)"
        let pool = try pool(names) { $0.nextProxy = .url(by) }
        let record = try await pool.send(Request(.plain(80, host: "far.test"), "GET", "/x"))
        #expect(record.text == "by the way")
        #expect(names.asked == ["next.test"])
        let lost = try self.pool(Names([:])) { $0.nextProxy = .url(by) }
        #expect(try await lost.send(Request(.plain(80, host: "far.test"))).error?.kind == .proxy)
    }

    @Test(arguments: ["socks5", "socks5h"])
    func `a proxy of socks5 is told the address, one of socks5h the name`(scheme: String) async throws {
        let told = Mutex<[UInt8]>([])
        let next = try Listener { peer in
            _ = peer.read()
            peer.write([5, 0])
            let asked = peer.read()
            told.withLock { $0 = Array(asked.dropFirst(3)) }
            peer.write([5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
            _ = peer.readHead()
            peer.write("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        }
        let names = Names(["next.test": ["127.0.0.1"], "far.test": ["9.8.7.6"]])
        let by = "\(scheme)://next.test:\(next.port)"
        let pool = try pool(names) { $0.nextProxy = .url(by) }
        #expect(try await pool.send(Request(.plain(80, host: "far.test"))).text == "ok")
        let isRemote = scheme == "socks5h"
        #expect(names.asked == (isRemote ? ["next.test"] : ["next.test", "far.test"]))
        #expect(
            told.withLock { $0 }
                == (isRemote ? [3, 8] + Array("far.test".utf8) + [0, 80] : [1, 9, 8, 7, 6, 0, 80]))
    }

    @Test func `a buffered client and a dialer ask the same way`() async throws {
        let origin = try RecordingOrigin()
        let names = Names(["api.test": ["127.0.0.1"]], hanging: ["hang.test"])
        defer { names.gate.open() }
        var options = PoolOptions()
        options.names = NameResolver(lookUp: names.lookUp)
        let client = try BufferedClient(options: options)
        var request = BufferedClient.Request(origin: .plain(origin.port, host: "api.test"))
        #expect(try await client.send(request).status == 200)
        request.origin.host = "hang.test"
        request.timeout = .milliseconds(300)
        await #expect(throws: BufferedClient.Failure.self) { try await client.send(request) }
    }
}
