import CurlTransport
import Foundation
import TestSupport
import Testing
import WireText

@Suite("a request goes out as it was given, and nothing else", .timeLimit(.minutes(1)))
struct RequestTests {
    @Test(arguments: ["GET", "POST", "PUT", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "patch", "!#$%&'*+-.^_`|~"])
    func `a request of any method has no field that was not given but the product's name`(method: String) async throws {
        let origin = try RecordingOrigin()
        let pool = try Calls()
        #expect(try await pool.send(Request(origin, method)).error == nil)
        let request = try #require(origin.requests.first)
        #expect(request.method == method)
        #expect(request.fields.map(\.description) == ["Host: \(origin.authority)", "User-Agent: \(Product.userAgent)"])
    }

    @Test func `a request with a body has no further field but its length`() async throws {
        let origin = try RecordingOrigin()
        let pool = try Calls()
        var request = Request(origin, "POST")
        request.body = Array("hello".utf8)
        #expect(try await pool.send(request).error == nil)
        #expect(origin.requests.map { $0.fields.map(\.name) } == [["Host", "User-Agent", "Content-Length"]])
        #expect(origin.requests.map(\.text) == ["hello"])
    }

    @Test func `fields keep their order, case, repetition, spaces and 8-bit values; an empty one stays`() async throws {
        let origin = try RecordingOrigin()
        let pool = try Calls()
        var request = Request(origin)
        request.fields = [
            ("X-One", "two"), ("x-one", "three  four"), ("X-Empty", ""), ("X-Semicolon", ";"), ("Cookie", "a=\u{e9}"),
            ("accept", "text/x"), ("User-Agent", "mine/1"), ("Authorization", "Bearer x"), ("TE", "x"),
            ("X-Long", String(repeating: "x", count: 60_000)),
        ]
        #expect(try await pool.send(request).error == nil)
        #expect(
            origin.requests.first?.fields.dropFirst().map(\.description)
                == request.fields.map { "\($0.name): \($0.value)" })
    }

    @Test func `fields of one exchange are not those of another`() async throws {
        let origin = try RecordingOrigin()
        let pool = try Calls()
        for number in 0..<5 {
            var request = Request(origin, number % 2 == 0 ? "POST" : "GET")
            if number % 2 == 0 {
                request.fields = (0..<50).map { (name: "X-\($0)", value: "secret") } + [(name: "Accept", value: "x")]
                request.body = [1, 2, 3] as [UInt8]
            }
            #expect(try await pool.send(request).error == nil)
        }
        #expect(origin.requests.map(\.fields.count) == [54, 2, 54, 2, 54])
    }

    @Test(arguments: [
        "/", "/a/../b", "//x//", "/%2e%2e/%zz", "/?", "/p?a=b&c=|^{}\"<>\\`", "/a;b?c", "/%00",
    ])
    func `the target of a request goes out byte for byte`(target: String) async throws {
        let origin = try RecordingOrigin()
        let pool = try Calls()
        #expect(try await pool.send(Request(origin, "GET", target)).error == nil)
        let line = "GET \(target) HTTP/1.1\r\n"
        #expect(origin.connections.first?.bytes.starts(with: Array(line.utf8)) == true)
    }

    @Test func `a redirect is an answer like any other`() async throws {
        let origin = try RecordingOrigin { try $0.respond(302, fields: [("Location", "/elsewhere")]) }
        let pool = try Calls()
        #expect(try await pool.send(Request(origin)).status == 302)
        #expect(origin.requests.count == 1)
    }

    @Test func `cookies, credentials and compression are left to the caller`() async throws {
        let origin = try RecordingOrigin {
            try $0.respond(fields: [("Set-Cookie", "a=b"), ("Content-Encoding", "gzip")], body: "not gzip at all")
        }
        let pool = try Calls()
        for _ in 0..<2 { #expect(try await pool.send(Request(origin)).text == "not gzip at all") }
        #expect(origin.requests.allSatisfy { $0.fields.count == 2 })
    }
}
