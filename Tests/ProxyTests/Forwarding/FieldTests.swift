import TestSupport
import Testing

@Suite(
    "fields pass as the program sent them, but for the token and what is hop-by-hop", .stopsProxies, .serialized,
    .timeLimit(.minutes(1)))
struct FieldTests {
    @Test func `fields keep name, value, order and repetition; only Host, Via and the token are added`() async throws {
        let proxy = try await ProxyInProcess()
        _ = try await proxy.request(
            fields: [
                "X-One:  two  ", "x-one: three", "Cookie: a=b; c", "X-Empty:", "Accept-Encoding: gzip",
                "X-Bytes: \u{e9}",
                "Authorization: Basic bWluZQ==",
            ])
        let request = try #require(proxy.origin.requests.first)
        #expect(
            request.fields.map(\.description) == [
                "Host: \(proxy.origin.authority)", "X-One: two", "x-one: three", "Cookie: a=b; c", "X-Empty: ",
                "Accept-Encoding: gzip", "X-Bytes: \u{e9}", "Authorization: Bearer T1", "Via: 1.1 heimdallr-proxy",
            ])
    }

    @Test func `hop-by-hop fields of a request end at the proxy`() async throws {
        let proxy = try await ProxyInProcess()
        _ = try await proxy.request(
            fields: [
                "Connection: X-Mine, keep-alive", "X-Mine: 1", "Keep-Alive: timeout=5", "Proxy-Connection: keep-alive",
                "Proxy-Authorization: Basic c2VjcmV0", "TE: trailers", "Trailer: X-End", "Upgrade: h2c", "X-Yours: 2",
            ])
        let request = try #require(proxy.origin.requests.first)
        #expect(Set(request.fields.map(\.name)) == ["Host", "X-Yours", "Authorization", "Via"])
    }

    @Test func `an offer of HTTP 2 is not taken up, and does not stop the request`() async throws {
        let proxy = try await ProxyInProcess()
        let response = try await proxy.request(
            fields: ["Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAEAAEAAAAIAAAAB"])
        #expect(response.status == 200)
        #expect(proxy.origin.requests.map { Set($0.fields.map(\.name)) } == [["Host", "Authorization", "Via"]])
    }

    @Test func `hop-by-hop fields of an answer end at the proxy`() async throws {
        let proxy = try await ProxyInProcess {
            try $0.respond(
                fields: [
                    ("Connection", "X-Private"), ("X-Private", "1"), ("Keep-Alive", "timeout=5"),
                    ("Proxy-Authenticate", "Basic"), ("Proxy-Connection", "close"), ("Upgrade", "h2c"),
                    ("X-Public", "2"), ("Set-Cookie", "a"), ("set-cookie", "b"), ("X-Empty", ""),
                ], body: "ok")
        }
        let response = try await proxy.request()
        #expect(
            response.fields.filter { $0.name != "Via" }.map(\.description) == [
                "X-Public: 2", "Set-Cookie: a", "set-cookie: b", "X-Empty: ", "Content-Length: 2",
            ])
    }

    @Test(arguments: [
        "Authorization", "authorization, Host, Content-Length, Transfer-Encoding, Via", "close, Authorization",
    ])
    func `Connection takes neither the token nor what frames the message away`(options: String) async throws {
        let proxy = try await ProxyInProcess()
        let response = try await proxy.request(
            "POST", fields: ["Connection: \(options)", "Authorization: Basic bWluZQ=="], body: "hello")
        #expect(response.status == 200)
        let request = try #require(proxy.origin.requests.first)
        #expect(request.authorization == ["Bearer T1"])
        #expect(request.values("Host") == [proxy.origin.authority])
        #expect(request.text == "hello")
        #expect(proxy.origin.problems == [])
    }

    @Test(arguments: [
        ("replace", "Authorization: Basic bWluZQ==", ["Bearer T1"]),
        ("keep", "Authorization: Basic bWluZQ==", ["Basic bWluZQ=="]),
        ("keep", "X-Other: 1", ["Bearer T1"]), ("reject", "X-Other: 1", ["Bearer T1"]),
        ("keep", "aUTHORIZATION: mine", ["mine"]),
        // A field named by Connection is not forwarded, so it can't replace the token.
        ("keep", "Authorization: Basic bWluZQ==\r\nConnection: Authorization", ["Bearer T1"]),
    ])
    func `on_existing decides about the program's own Authorization`(rule: String, field: String, sent: [String])
        async throws
    {
        let proxy = try await ProxyInProcess(upstream: "on_existing: \(rule)")
        #expect(try await proxy.request(fields: [field]).status == 200)
        #expect(proxy.origin.requests.map(\.authorization) == [sent])
    }

    @Test func `on_existing: reject refuses the program's own Authorization, and nothing is sent`() async throws {
        let proxy = try await ProxyInProcess(upstream: "on_existing: reject")
        try expectProblem(try await proxy.request(fields: ["authorization: Basic bWluZQ=="]), "own-credential")
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `set_headers and remove_headers hold whatever the program sends`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: """
                set_headers: {X-Tenant: "blue; a=1", X-Empty: ""}
                remove_headers: [X-Debug, Accept-Encoding, traceparent]
                """)
        for _ in 0..<2 {
            let response = try await proxy.request(
                "POST",
                fields: [
                    "x-tenant: red", "X_Tenant: green", "X-TENANT: 3", "x-debug: 1", "Accept-Encoding: gzip",
                    "Accept: */*", "traceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                ], body: "hello")
            #expect(response.status == 200)
        }
        #expect(proxy.origin.requests.count == 2)
        for request in proxy.origin.requests {
            #expect(
                request.fields.map(\.description) == [
                    "Host: \(proxy.origin.authority)", "Accept: */*", "Content-Length: 5", "X-Tenant: blue; a=1",
                    "X-Empty: ", "Authorization: Bearer T1", "Via: 1.1 heimdallr-proxy",
                ])
        }
    }

    @Test func `fields of requests without a credential, and of trailers, are edited, too`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "require_placeholder: DUMMY\nset_headers: {X-Tenant: blue}\nremove_headers: X-Debug")
        let response = try await proxy.send(
            "PUT http://api.test/ HTTP/1.1\r\nHost: api.test\r\nX-Tenant: red\r\nX-Debug: 1\r\n"
                + "Transfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\nX-Tenant: red\r\nX-Debug: 2\r\nX-Sum: 3\r\n\r\n",
            method: "PUT")
        #expect(response.status == 200)
        let request = try #require(try await proxy.origin.completeRequests(1).first)
        #expect(
            request.authorization == [] && request.values("X-Tenant") == ["blue"] && request.values("X-Debug") == [])
        #expect(request.trailers.map(\.description) == ["X-Sum: 3"])
    }

    @Test(arguments: [
        ("{header: X-Token, scheme: Key}", "X-Token", "Key T1"),
        ("{header: X-Api-Key, scheme: \"\"}", "X-Api-Key", "T1"),
        ("{scheme: token}", "Authorization", "token T1"),
    ])
    func `the token goes into another field or scheme, in place of the program's`(
        inject: String, name: String, value: String
    ) async throws {
        let proxy = try await ProxyInProcess(upstream: "inject: \(inject)")
        _ = try await proxy.request(fields: ["\(name.lowercased()): mine", "X-Other: 1"])
        let request = try #require(proxy.origin.requests.first)
        #expect(request.values(name) == [value])
        #expect(request.values("X-Other") == ["1"])
        if name != "Authorization" { #expect(request.authorization == []) }
    }

    @Test(arguments: [
        ("/a", "/a?access_token=T1"), ("/a?x=%zz&y", "/a?x=%zz&y&access_token=T1"),
        ("/a?access_token=mine&x=1", "/a?x=1&access_token=T1"), ("/a?x=1&access_token", "/a?x=1&access_token=T1"),
        ("/a?access%5Ftoken=mine&x=1", "/a?x=1&access_token=T1"), ("/a?%61ccess_token", "/a?access_token=T1"),
        ("/a?x=1;access_token=mine;y&z", "/a?x=1;y&z&access_token=T1"),
        ("/a?access_token=1;x&;;&&access%255Ftoken", "/a?x&;;&&access%255Ftoken&access_token=T1"),
        ("/a?access_token_2=x", "/a?access_token_2=x&access_token=T1"), ("/a?", "/a?access_token=T1"),
    ])
    func `the token goes into the query where the configuration says so`(target: String, sent: String) async throws {
        let proxy = try await ProxyInProcess(upstream: "inject: {query: access_token}\nallow_deprecated: true")
        _ = try await proxy.request("GET", "http://api.test\(target)", fields: ["Authorization: Basic bWluZQ=="])
        let request = try #require(proxy.origin.requests.first)
        #expect(request.target == sent)
        #expect(request.authorization == ["Basic bWluZQ=="])
    }

    @Test func `TRACE carries no token`() async throws {
        let proxy = try await ProxyInProcess()
        #expect(try await proxy.request("TRACE").status == 200)
        #expect(proxy.origin.requests.map(\.authorization) == [[]])
        #expect(proxy.endpoint.requests.isEmpty)
    }

    @Test func `an upstream without a client gets what the program sent`() async throws {
        let proxy = try await ProxyInProcess(more: "- {host: plain.test, url: ORIGIN}")
        _ = try await proxy.request("GET", "http://plain.test/", fields: ["Authorization: Basic bWluZQ=="])
        _ = try await proxy.request("GET", "http://plain.test/")
        #expect(proxy.origin.requests.map(\.authorization) == [["Basic bWluZQ=="], []])
        #expect(proxy.endpoint.requests.isEmpty)
    }
}
