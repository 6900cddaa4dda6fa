import Foundation
import TestSupport
import Testing

@Suite("with require_placeholder only who asks for a credential gets it", .stopsProxies, .timeLimit(.minutes(1)))
struct PlaceholderTests {
    private static func basic(_ pair: String) -> String { "Basic " + Data(pair.utf8).base64EncodedString() }

    @Test(arguments: ["DUMMY", "Bearer DUMMY", "Token  DUMMY", basic("me:DUMMY"), basic(":DUMMY")])
    func `the placeholder of a program is replaced by the token`(value: String) async throws {
        let proxy = try await ProxyInProcess(upstream: "require_placeholder: DUMMY")
        _ = try await proxy.request(fields: ["Authorization: \(value)"])
        #expect(proxy.origin.requests.first?.authorization == ["Bearer T1"])
    }

    @Test(arguments: [
        [], ["Authorization: Bearer mine"], ["Authorization: Bearer DUMMY2"], ["Authorization: Bearer dummy"],
        ["Authorization: DUMMY x"], ["Authorization: \(basic("DUMMY:x"))"],
        ["Connection: Authorization", "Authorization: Bearer DUMMY"],
    ])
    func `a request without the placeholder goes unsigned, with the program's own fields`(fields: [String]) async throws
    {
        let proxy = try await ProxyInProcess(upstream: "require_placeholder: DUMMY\non_existing: reject")
        #expect(try await proxy.request(fields: fields).status == 200)
        let request = try #require(proxy.origin.requests.first)
        let isHop = fields.first?.hasPrefix("Connection") == true
        let own = isHop ? [] : fields.filter { !$0.hasPrefix("Connection") }
        #expect(
            request.fields.map(\.description) == ["Host: \(proxy.origin.authority)"] + own + [
                "Via: 1.1 heimdallr-proxy"
            ])
    }

    @Test func `a placeholder in the query is replaced by the key, and only as that parameter`() async throws {
        let proxy = try await ProxyInProcess(
            more: "- {host: key.test, url: ORIGIN, allow_plaintext: true, require_placeholder: a+b, "
                + "inject: [{query: key, value: k}, {header: X-Key, value: h}]}")
        for (asked, sent, header) in [
            ("/?key=a%2Bb&x=1", "/?x=1&key=k", ["h"]), ("/?key=a+b", "/?key=k", ["h"]), ("/?key=c", "/?key=c", []),
            ("/?other=a%2Bb", "/?other=a%2Bb", []), ("/a+b", "/a+b", []),
        ] {
            _ = try await proxy.request("GET", "http://key.test" + asked)
            let request = try #require(proxy.origin.requests.last)
            #expect(request.target == sent)
            #expect(request.values("X-Key") == header)
        }
        // One place asks for all; what another holds is the program's own there.
        _ = try await proxy.request("GET", "http://key.test/", fields: ["X-Key: a+b"])
        #expect(proxy.origin.requests.last?.target == "/?key=k")
    }

    @Test func `on_existing judges the fields beside a placeholder`() async throws {
        let more =
            "- {host: key.test, url: ORIGIN, allow_plaintext: true, require_placeholder: DUMMY, on_existing: WORD, "
            + "inject: [{header: X-One, value: one}, {header: X-Two, value: two}]}"
        let fields = ["X-One: DUMMY", "X-Two: mine"]
        for (word, two) in [("replace", "two"), ("keep", "mine")] {
            let proxy = try await ProxyInProcess(more: more.replacing("WORD", with: word))
            _ = try await proxy.request("GET", "http://key.test/", fields: fields)
            let request = try #require(proxy.origin.requests.first)
            #expect(request.values("X-One") == ["one"] && request.values("X-Two") == [two])
        }
        let proxy = try await ProxyInProcess(more: more.replacing("WORD", with: "reject"))
        let response = try await proxy.request("GET", "http://key.test/", fields: fields)
        try expectProblem(response, "own-credential", upstream: "key.test")
    }

    @Test func `a token's replay after a 401 keeps the placeholder's place`() async throws {
        let proxy = try await ProxyInProcess(upstream: "require_placeholder: DUMMY") { exchange in
            try exchange.head.authorization == ["Bearer T2"] ? exchange.respond(body: "ok") : exchange.respond(401)
        }
        #expect(try await proxy.request(fields: ["Authorization: Bearer DUMMY"]).status == 200)
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
        #expect(try await proxy.request(fields: ["Authorization: Bearer mine"]).status == 401)
        #expect(proxy.origin.requests.last?.authorization == ["Bearer mine"])
    }
}
