import HTTPServer
import TestSupport
import Testing

@Suite("A router's table", .timeLimit(.minutes(1)))
struct RouterTests {
    static let router: Router = {
        var router = Router()
        router.on("GET", "/") { _, _ in .plain(200, "root") }
        router.on("GET", "/login/{client}") { _, names in .plain(200, "login \(names["client"] ?? "")") }
        router.on("POST", "/login/{client}") { _, _ in .plain(200, "posted") }
        router.on("POST", "/enter") { _, _ in .plain(200, "entered") }
        router.on("GET", "/callback/") { _, _ in .plain(200, "called") }
        return router
    }()

    static let requests: [(line: String, status: Int, text: String?)] = [
        ("GET /", 200, "root"),
        ("GET /?x", 200, "root"),
        ("GET /login/a%20b", 200, "login a b"),
        ("POST /login/a", 200, "posted"),
        ("GET /login/", 404, nil),
        ("GET /login/a/", 404, nil),
        ("GET //login/a", 404, nil),
        ("GET /login/%zz", 404, nil),
        ("GET /login/%ff", 404, nil),
        ("GET /enter", 405, nil),
        ("GET /callback/", 200, "called"),
        ("GET /callback", 404, nil),
        ("PUT /login/a", 405, nil),
        ("OPTIONS *", 404, nil),
    ]

    @Test("a request gets its route, 404 or 405", arguments: requests)
    func routes(_ line: String, _ status: Int, _ text: String?) async throws {
        try await withServer(respond: { await Self.router.respond($0) }) { port in
            let client = try await RawClient.connect(port: port)
            try await client.send("\(line) HTTP/1.1\r\nHost: h\r\n\r\n")
            let response = try await client.response()
            #expect(response.status == status)
            if let text { #expect(response.text == text) }
            if line == "PUT /login/a" { #expect(response.field("allow") == "GET, HEAD, POST") }
        }
    }

    @Test("the reserved names are those of the table")
    func reserved() { #expect(Self.router.reservedNames == ["login", "enter", "callback"]) }
}
