import Foundation
import TestSupport
import Testing

@testable import Proxy

@Suite(
    "what is injected goes where it is meant, besides the token or instead of it", .stopsProxies,
    .timeLimit(.minutes(1)))
struct InjectionTests {
    /// A proxy whose host `key.test` has no client.
    private func proxy(_ lines: String) async throws -> ProxyInProcess {
        try await ProxyInProcess(
            more: """
                - host: key.test
                  url: ORIGIN
                  allow_plaintext: true
                \(lines.indented(2))
                """)
    }

    private func ask(
        _ proxy: ProxyInProcess, _ target: String = "/", method: String = "GET", fields: [String] = []
    ) async throws -> RecordedRequest {
        let response = try await proxy.request(method, "http://key.test" + target, fields: fields)
        try #require(response.status == 200, "\(response.text)")
        return try #require(proxy.origin.requests.last)
    }

    @Test func `a fixed key goes into its field, in place of the program's own`() async throws {
        let proxy = try await proxy("inject: {header: X-Api-Key, value: k-1}")
        let request = try await ask(proxy, fields: ["x-api-key: mine", "X_Api_Key: mine", "X-Other: 1"])
        #expect(
            request.fields.map(\.description) == [
                "Host: \(proxy.origin.authority)", "X-Other: 1", "X-Api-Key: k-1", "Via: 1.1 heimdallr-proxy",
            ])
    }

    @Test func `a fixed key goes behind the scheme of its field`() async throws {
        let proxy = try await proxy("inject: {header: Authorization, scheme: Token, value: k-1}")
        #expect(try await ask(proxy).authorization == ["Token k-1"])
    }

    @Test func `a fixed key goes into the query, escaped, in place of the program's own`() async throws {
        let proxy = try await proxy("inject: {query: key, value: \"a/b +\u{e9}\"}")
        #expect(try await ask(proxy, "/p?x=1&key=mine&y").target == "/p?x=1&y&key=a%2Fb%20%2B%C3%A9")
        #expect(try await ask(proxy, "/p").target == "/p?key=a%2Fb%20%2B%C3%A9")
    }

    @Test(arguments: [
        ("username: alice, password: s", "alice:s"), ("username: sk_1", "sk_1:"), ("password: pat", ":pat"),
    ])
    func `user name and password become HTTP Basic, each of them optional`(entry: String, pair: String) async throws {
        let proxy = try await proxy("inject: {basic: {\(entry)}}")
        let expected = "Basic " + Data(pair.utf8).base64EncodedString()
        #expect(try await ask(proxy, fields: ["Authorization: Bearer mine"]).authorization == [expected])
    }

    @Test func `a token, a key in a field and keys in the query go on one request`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: """
                inject:
                  - {header: X-Token, scheme: ""}
                  - {basic: {username: u, password: p}}
                  - {query: key, value: k}
                  - {query: other, value: o}
                """)
        _ = try await proxy.request("GET", "http://api.test/a?b=c&other=x", fields: ["X-Token: mine"])
        let request = try #require(proxy.origin.requests.first)
        #expect(request.target == "/a?b=c&key=k&other=o")
        #expect(request.values("X-Token") == ["T1"])
        #expect(request.authorization == ["Basic dTpw"])
    }

    @Test func `a 401 passes where there is no client, and nothing is sent twice`() async throws {
        let proxy = try await ProxyInProcess(
            more: "- {host: key.test, url: ORIGIN, allow_plaintext: true, inject: {header: X-Key, value: k}}",
            answer: {
                try $0.respond(401, fields: [("WWW-Authenticate", "Bearer error=\"invalid_token\"")], body: "no")
            })
        let response = try await proxy.request("GET", "http://key.test/")
        #expect(response.status == 401 && response.text == "no")
        #expect(proxy.origin.requests.count == 1)
    }

    @Test func `TRACE carries no injected credential`() async throws {
        let proxy = try await proxy("inject: {header: X-Key, value: k}")
        #expect(try await ask(proxy, method: "TRACE").values("X-Key") == [])
    }

    @Test func `OPTIONS of the whole server has no query for a key`() async throws {
        let proxy = try await proxy("inject: {query: key, value: k}")
        let response = try await proxy.send("OPTIONS * HTTP/1.1\r\nHost: key.test\r\n\r\n", method: "OPTIONS")
        try expectProblem(response, "no-query", upstream: "key.test")
    }

    @Test func `on_existing decides about each injected place by itself`() async throws {
        let keep = try await proxy(
            "on_existing: keep\ninject: [{header: X-Key, value: k}, {header: X-Other, value: o}]")
        let request = try await ask(keep, fields: ["X-Key: mine"])
        #expect(request.values("X-Key") == ["mine"] && request.values("X-Other") == ["o"])
        let both = try await ask(keep, fields: ["X-Key: mine", "X-Other: mine"])
        #expect(both.values("X-Key") == ["mine"] && both.values("X-Other") == ["mine"])
        let reject = try await proxy(
            "on_existing: reject\ninject: [{header: X-Key, value: k}, {query: q, value: o}]")
        for (target, fields) in [("/", ["X-Key: mine"]), ("/?q=", []), ("/?a;q=1", [])] {
            let response = try await reject.request("GET", "http://key.test" + target, fields: fields)
            try expectProblem(response, "own-credential", upstream: "key.test")
        }
        #expect(try await ask(reject).values("X-Key") == ["k"])
    }

    @Test func `a key in a trailer does not stand in for ours`() async throws {
        let proxy = try await proxy("inject: {header: X-Key, value: k}")
        let text =
            "POST http://key.test/ HTTP/1.1\r\nHost: key.test\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "1\r\na\r\n0\r\nX-Key: mine\r\nX-End: 1\r\n\r\n"
        #expect(try await proxy.send(text, method: "POST").status == 200)
        let request = try #require(proxy.origin.requests.first)
        #expect(request.values("X-Key") == ["k"])
        #expect(request.trailers.map(\.name) == ["X-End"])
    }

    @Test func `a page in a browser does not get the key`() async throws {
        let proxy = try await proxy("inject: {header: X-Key, value: k}")
        let response = try await proxy.send(
            "GET / HTTP/1.1\r\nHost: key.test\r\nOrigin: http://evil.example\r\n\r\n")
        try expectProblem(response, "web-page", upstream: "key.test")
    }

    // MARK: Secrets that change

    /// Waits until requests go out with that key.
    private func reaches(_ key: String, _ proxy: ProxyInProcess) async throws {
        try await eventually("a request with \(key)") {
            _ = try await proxy.request("GET", "http://key.test/")
            return proxy.origin.requests.last?.values("X-Key") == [key]
        }
    }

    @Test func `a changed file counts soon, and a bad one leaves the last good one`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write("one\n", to: "key")
        let failures = Recorder<String>()
        var observer = ProxyObserver()
        observer.credentialFailed = { failures.append("\($0): \($1)") }
        let proxy = try await ProxyInProcess(
            more: "- {host: key.test, url: ORIGIN, allow_plaintext: true, inject: {header: X-Key, value: "
                + "{file: \(folder.path)/key}}}", observer: observer)
        #expect(try await ask(proxy).values("X-Key") == ["one"])
        try folder.write("two\n", to: "key")
        try await reaches("two", proxy)
        try folder.write("thr\u{7}ee\r\nX-Evil: 1\n", to: "key")
        try await eventually("the fault is told") { !failures.all.isEmpty }
        #expect(try await ask(proxy).values("X-Key") == ["two"])
        #expect(failures.all.count == 1)
        #expect(failures.all[0].hasPrefix("upstreams[1].inject[0] (X-Key: <secret>): the secret can't go onto"))
        #expect(!failures.all[0].contains("Evil"))
    }

    @Test func `a secret that was never there is a 503, which ends when the secret is there`() async throws {
        let folder = try TemporaryDirectory()
        try folder.write("one\n", to: "key")
        let proxy = try await ProxyInProcess(
            more: "- {host: key.test, url: ORIGIN, allow_plaintext: true, inject: {header: X-Key, value: "
                + "{file: \(folder.path)/key}}}",
            change: { _ in try? FileManager.default.removeItem(atPath: folder.path + "/key") })
        let response = try await proxy.request("GET", "http://key.test/")
        try expectProblem(response, "no-credential", upstream: "key.test")
        #expect(response.field("Retry-After") == "1")
        #expect(proxy.origin.requests.isEmpty)
        try folder.write("two\n", to: "key")
        try await reaches("two", proxy)
    }
}
