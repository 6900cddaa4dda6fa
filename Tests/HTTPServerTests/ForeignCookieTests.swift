import HTTPServer
import Synchronization
import TestSupport
import Testing

@Suite("cookies that other servers of the host have set", .timeLimit(.minutes(1)))
struct ForeignCookieTests {
    private static let foreign = (0..<180).map { "c\($0)=" + String(repeating: "x", count: 4090) }

    private static var settings: ServerSettings {
        var settings = ServerSettings()
        settings.maxHeaderBytes = 16 << 10
        settings.maxFieldBytes = 8 << 10
        settings.ownCookies = "own-"
        return settings
    }

    /// The Cookie field that the handler sees.
    private static func cookies(_ heads: [String], behind: String = "") async throws -> [String] {
        let seen = Mutex<[String]>([])
        try await withServer(settings: settings) { request in
            seen.withLock { $0.append(request.values("Cookie").joined(separator: "|")) }
            return .plain(200, String(decoding: request.body, as: UTF8.self))
        } _: { port in
            let client = try await RawClient.connect(port: port)
            for head in heads {
                try await client.send(head + behind)
                let answer = try await client.response()
                #expect(answer.status == 200, "\(answer.text)")
                if !behind.isEmpty { #expect(answer.text == behind) }
            }
        }
        return seen.withLock { $0 }
    }

    @Test func `a browser's full store of foreign cookies reaches no limit, and our own come through`()
        async throws
    {
        let all = (Self.foreign.prefix(90) + ["own-a=1"] + Self.foreign.suffix(90) + ["own-b=2"]).joined(
            separator: "; ")
        let head = "POST / HTTP/1.1\r\nHost: h\r\nCookie: \(all)\r\nContent-Length: 5\r\n\r\n"
        let seen = try await Self.cookies([head, head], behind: "hello")
        #expect(seen.count == 2)
        for field in seen {
            let names = field.split(separator: ";").map { $0.drop { $0 == " " }.prefix { $0 != "=" } }
            #expect(names.filter { $0.hasPrefix("own-") } == ["own-a", "own-b"])
        }
    }

    @Test func `a head within the limits is not changed`() async throws {
        let some = Self.foreign.prefix(3).joined(separator: "; ") + "; own-a=1"
        #expect(try await Self.cookies(["GET / HTTP/1.1\r\nHost: h\r\ncookie: \(some)\r\n\r\n"]) == [some])
    }

    @Test(arguments: [
        "X: " + String(repeating: "x", count: 9000), "X: " + String(repeating: "x", count: 40_000),
        "Cookie: own-a=" + String(repeating: "x", count: 40_000),
        "Cookie: a=" + String(repeating: "x", count: 40_000) + "\r\nX: " + String(repeating: "x", count: 9000),
        "Cookie: a=\n" + String(repeating: "x", count: 40_000) + "; b=c",
        "Cookie: a=" + String(repeating: "x", count: 40_000) + "\r\n b=c",
        String(repeating: "Cookie: a=b\r\n", count: 300) + "X: y",
    ])
    func `a head that other fields or our own cookies make too large is refused as before`(field: String) async throws {
        try await withServer(settings: Self.settings, respond: echo) { port in
            let client = try await RawClient.connect(port: port)
            try? await client.send("GET / HTTP/1.1\r\nHost: h\r\n\(field)\r\n\r\n")
            let answer = String(decoding: try await client.readToEnd(), as: UTF8.self)
            #expect(answer.hasPrefix("HTTP/1.1 4"), "\(answer.prefix(200))")
        }
    }
}
