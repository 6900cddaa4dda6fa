import TestSupport
import Testing

@Suite("rules hold for what a server may take for method and path", .stopsProxies, .serialized, .timeLimit(.minutes(1)))
struct OverrideTests {
    @Test(arguments: [
        "X-HTTP-Method-Override: DELETE", "x-http-method: PUT", "X-Method-Override: DELETE",
        "X_HTTP_Method_Override: DELETE", "X-HTTP-Method-Override: GET", "X-HTTP-Method-Override:",
        "X-HTTP-MethodOverride: DELETE", "x-http-verb: DELETE", "X-Original-Method: PUT", "_method: PUT",
        "X.HTTP.Method.Override: PUT", "_METHOD: PUT", "Method-Override: PUT",
    ])
    func `a method in a field is refused where there are rules for methods`(field: String) async throws {
        let limited = try await ProxyInProcess(upstream: "methods: [GET, POST]")
        try expectProblem(try await limited.request("POST", fields: [field], body: "x"), "method-override")
        #expect(limited.origin.requests.isEmpty)
        #expect(limited.endpoint.requests.isEmpty)
        let open = try await ProxyInProcess()
        #expect(try await open.request("POST", fields: [field], body: "x").status == 200)
    }

    @Test(arguments: [
        "/?_method=DELETE", "/x?a=b&_method=put", "/?%5fmethod=DELETE", "/?a;_method=DELETE",
        "/?.method=PUT", "/?+_method=PUT", "/?%20_method=PUT", "/?%20method=PUT", "/?_METHOD=PUT", "/?_Method=PUT",
        "/?_method[]=PUT", "/?_method%5B%5D=PUT", "/?_method[a]=PUT", "/?[method=PUT", "/?_method%00=PUT",
        "/?_method%00x=PUT", "/?X-HTTP-Method-Override=PUT", "/?x_http_method=PUT", "/?$httpMethod=PUT",
        "/?%24httpMethod=PUT", "/?_method%3dPUT", "/?%255Fmethod=PUT", "/?%u005fmethod=PUT", "/?a=b&_method",
        "/?x%2Dhttp%2Dverb=PUT", "/?&&_m%65thod=PUT",
    ])
    func `a method in the query is refused where there are rules for methods`(target: String) async throws {
        let limited = try await ProxyInProcess(upstream: "methods: [GET, POST]")
        try expectProblem(try await limited.request("POST", "http://api.test\(target)", body: "x"), "method-override")
        let open = try await ProxyInProcess()
        #expect(try await open.request("POST", "http://api.test\(target)", body: "x").status == 200)
    }

    @Test func `a field that Connection names ends here, and one that only looks alike passes`() async throws {
        let proxy = try await ProxyInProcess(upstream: "methods: [GET]")
        #expect(
            try await proxy.request(
                "GET",
                "http://api.test/_method?method=x&x_method=y&httpMethod=z&a[_method]=b&_methods=c&q=_method=d&%u=&%",
                fields: ["Connection: X-HTTP-Method", "X-HTTP-Method: PUT", "X-HTTP-Methods: PUT", "Method: PUT"]
            ).status == 200)
        #expect(proxy.origin.requests.first?.values("X-HTTP-Method") == [])
    }

    @Test(arguments: [
        "X-Original-URL: /admin", "x-rewrite-url: /admin", "X_Original_Url: /admin", "X-Forwarded-Uri: /admin",
        "X-Original-URI: /admin", "x-override-url: /admin", "X-Forwarded-Prefix: /admin", "X_FORWARDED_PREFIX: /",
        "X-Script-Name: /admin",
    ])
    func `a path in a field is refused where there are rules for paths, or a path in the url`(field: String)
        async throws
    {
        for proxy in [try await ProxyInProcess(upstream: "paths: [/v1/]"), try await ProxyInProcess(url: "/v1")] {
            try expectProblem(try await proxy.request("GET", "http://api.test/v1/x", fields: [field]), "path-override")
            #expect(proxy.origin.requests.isEmpty)
        }
        #expect(try await ProxyInProcess().request(fields: [field]).status == 200)
    }

    @Test func `OPTIONS for the whole server has no query for a token`() async throws {
        let proxy = try await ProxyInProcess(upstream: "inject: {query: access_token}\nallow_deprecated: true")
        let response = try await proxy.send("OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n", method: "OPTIONS")
        try expectProblem(response, "no-query")
        #expect(proxy.origin.requests.isEmpty)
        #expect(try await proxy.request("OPTIONS", "http://api.test/x").status == 200)
        #expect(proxy.origin.requests.first?.target == "/x?access_token=T1")
        let unsigned = try await ProxyInProcess()
        #expect(
            try await unsigned.send("OPTIONS * HTTP/1.1\r\nHost: api.test\r\n\r\n", method: "OPTIONS").status == 200)
        #expect(unsigned.origin.requests.first?.authorization == ["Bearer T1"])
    }
}
