import TestSupport
import Testing

@Suite(
    "names of fields are compared as servers mangle them: by letters and digits", .stopsProxies, .serialized,
    .timeLimit(.minutes(1)))
struct MangledNameTests {
    /// Names that PHP, CGI or WSGI may take for `X-Api-Key`.
    private static let spellings = [
        "X.Api.Key", "X_Api.Key", "x~api-key", "XApiKey", "X-Api--Key", "x!api|key", "X-Api-Key_", "'X-Api-Key",
    ]

    private func keyProxy(_ upstream: String) async throws -> ProxyInProcess {
        try await ProxyInProcess(
            upstream: "inject: [{header: Authorization}, {header: X-Api-Key, value: k}]\n" + upstream)
    }

    @Test func `a field that the configuration sets or removes is left out, in the head and in trailers`() async throws
    {
        for key in ["set_headers: {X-Api-Key: blue}", "remove_headers: [X_Api_Key]"] {
            let proxy = try await ProxyInProcess(upstream: key)
            let lines = Self.spellings.map { "\($0): red\r\n" }.joined()
            let response = try await proxy.send(
                "PUT http://api.test/ HTTP/1.1\r\nHost: api.test\r\nTransfer-Encoding: chunked\r\nX-Api: 1\r\n\(lines)\r\n"
                    + "1\r\na\r\n0\r\n\(lines)X-Api: 2\r\n\r\n", method: "PUT")
            #expect(response.status == 200)
            let request = try #require(try await proxy.origin.completeRequests(1).first)
            let expected = key.hasPrefix("set") ? ["X-Api-Key: blue"] : []
            #expect(request.fields.map(\.description).filter { $0.contains("red") || $0.contains("blue") } == expected)
            #expect(request.values("X-Api") == ["1"])
            #expect(request.trailers.map(\.description) == ["X-Api: 2"])
        }
    }

    @Test(arguments: spellings)
    func `a program's own value for an injected field is replaced, kept or rejected`(name: String) async throws {
        let replacing = try await keyProxy("")
        #expect(try await replacing.request(fields: ["\(name): mine"]).status == 200)
        let request = try #require(replacing.origin.requests.first)
        #expect(request.fields.filter { $0.value == "mine" || $0.value == "k" }.map(\.description) == ["X-Api-Key: k"])
        let keeping = try await keyProxy("on_existing: keep")
        #expect(try await keeping.request(fields: ["\(name): mine"]).status == 200)
        #expect(keeping.origin.requests.first?.fields.contains { $0.value == "k" } == false)
        let rejecting = try await keyProxy("on_existing: reject")
        try expectProblem(try await rejecting.request(fields: ["\(name): mine"]), "own-credential")
    }

    @Test(arguments: spellings)
    func `a placeholder is found, and beside it a value of the program's own`(name: String) async throws {
        let proxy = try await keyProxy("require_placeholder: DUMMY")
        #expect(try await proxy.request(fields: ["\(name): DUMMY"]).status == 200)
        #expect(proxy.origin.requests.first?.values("X-Api-Key") == ["k"])
        // With both, the key stays here, and the placeholder does not leave.
        let both = try await proxy.request(fields: ["X-Api-Key: DUMMY", "\(name): mine"])
        try expectProblem(both, "placeholder-elsewhere")
        #expect(proxy.origin.requests.count == 1)
    }

    @Test(arguments: [
        (["Mcp-Method: get_a"], 200), (["MCP-METHOD: get_a"], 200), (["Mcp-Method: list, all"], 200),
        (["Mcp-Method: get_a", "Mcp.Method: delete"], 403), (["Mcp.Method: delete", "Mcp-Method: get_a"], 403),
        (["Mcp-Method: get_a", "Mcp~Method: get_a"], 403), (["Mcp-Method: get_a", "mcp_method: delete"], 403),
        // Servers that do not mangle names would miss the field.
        (["Mcp.Method: get_a"], 403), (["Mcp_Method: get_a"], 403),
        (["Mcp-Method: get_a, delete"], 403), (["Mcp-Method: get_a,delete"], 403), (["Mcp-Method: get_a,"], 403),
        (["Mcp-Method: list, al"], 403), (["Mcp-Methods: get_a"], 403),
    ])
    func `a rule by field sees all values that a server may take, also those in one line`(
        fields: [String], status: Int
    ) async throws {
        let proxy = try await ProxyInProcess(upstream: #"fields: {Mcp-Method: ["get_*", "list, all"]}"#)
        #expect(try await proxy.request(fields: fields).status == status)
        #expect(proxy.origin.requests.count == (status == 200 ? 1 : 0))
    }

    @Test func `a pattern with a comma accepts what begins with it`() async throws {
        let proxy = try await ProxyInProcess(upstream: #"fields: {X-Parts: "a, *"}"#)
        #expect(try await proxy.request(fields: ["X-Parts: a, b, c"]).status == 200)
        #expect(try await proxy.request(fields: ["X-Parts: ab, c"]).status == 403)
    }

    @Test func `a field for the proxy ends here, whatever mark follows its first word`() async throws {
        let proxy = try await ProxyInProcess()
        #expect(
            try await proxy.request(
                fields: ["Proxy.Authorization: Basic eA==", "Proxy~Status: x", "Proxy.: x", "Proxyless: y"]
            ).status == 200)
        let request = try #require(proxy.origin.requests.first)
        #expect(Set(request.fields.map(\.name)) == ["Host", "Proxyless", "Authorization", "Via"])
    }
}
