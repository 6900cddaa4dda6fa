import Foundation
import TestSupport
import Testing

@Suite("a refused JSON-RPC request gets a JSON-RPC error", .stopsProxies, .timeLimit(.minutes(1)))
struct JSONRPCTests {
    private static let json = ["Content-Type: application/json; charset=utf-8"]

    private func refused(
        _ body: String, _ fields: [String] = JSONRPCTests.json, on proxy: ProxyInProcess
    ) async throws -> (response: RawResponse, value: [String: Any]) {
        let response = try await proxy.request("POST", "http://api.test/mcp", fields: fields, body: body)
        #expect(response.status == 403)
        #expect(response.field("Proxy-Status") == "heimdallr-proxy; error=http_request_denied")
        let value = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
        return (response, try #require(value))
    }

    private func proxy() async throws -> ProxyInProcess { try await ProxyInProcess(upstream: "paths: [/v1]") }

    @Test(arguments: [("7", "7"), ("\"a-\u{E9}\"", "a-\u{E9}"), ("90071992547409931", "90071992547409931")])
    func `a refused JSON-RPC request gets an error with its id, the sentences and the problem`(
        id: String, expected: String
    ) async throws {
        let proxy = try await proxy()
        let (response, value) = try await refused(
            #"{"jsonrpc":"2.0","id":\#(id),"method":"tools/call","params":{"name":"x"}}"#, on: proxy)
        #expect(response.field("Content-Type") == "application/json")
        #expect(value["jsonrpc"] as? String == "2.0")
        #expect(value["id"].map { "\($0)" } == expected)
        let error = try #require(value["error"] as? [String: Any])
        #expect(error["code"] as? Int == -32_000)
        #expect((error["message"] as? String)?.contains("No rule of this host covers the path /mcp.") == true)
        let data = try #require(error["data"] as? [String: Any])
        #expect(data["type"] as? String == "urn:heimdallr-proxy:problem:not-covered")
    }

    @Test(arguments: [
        #"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        #"[{"jsonrpc":"2.0","id":1,"method":"a"},{"jsonrpc":"2.0","id":2,"method":"b"}]"#,
        #"{"jsonrpc":"2.0","id":{},"method":"a"}"#,
    ])
    func `a batch, a notification and an odd id get an error with a null id`(body: String) async throws {
        let (_, value) = try await refused(body, on: try await proxy())
        #expect(value["id"] is NSNull && value["error"] is [String: Any])
    }

    @Test func `a request that is no JSON-RPC gets a problem document, whatever its body`() async throws {
        let proxy = try await proxy()
        let call = #"{"jsonrpc":"2.0","id":1,"method":"a"}"#
        let long = #"{"jsonrpc":"2.0","id":1,"method":"\#(String(repeating: "a", count: 17_000))"}"#
        for (body, fields) in [
            (call, ["Content-Type: text/plain"]), (call, []), ("{\"id\":1}", Self.json), ("{", Self.json),
            ("", Self.json),
            (long, Self.json), (#"{"jsonrpc":"2.0","id":1,"result":{}}"#, Self.json),
        ] {
            let (response, value) = try await refused(body, fields, on: proxy)
            #expect(response.field("Content-Type") == "application/problem+json", "\(body.prefix(40))")
            #expect(value["type"] as? String == "urn:heimdallr-proxy:problem:not-covered")
        }
    }

    @Test(arguments: ["Mcp-Protocol-Version: 2025-06-18", "Accept: application/json, text/event-stream"])
    func `an MCP request gets one with a null id, and is not waited for, if its body has not arrived`(
        field: String
    ) async throws {
        let proxy = try await proxy()
        let client = try await proxy.connect(
            sending: "POST http://api.test/mcp HTTP/1.1\r\nHost: api.test\r\nContent-Type: application/json\r\n"
                + "\(field)\r\nContent-Length: 10\r\n\r\n")
        let response = try await client.response(to: "POST")
        let value = try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any]
        #expect(response.status == 403 && value?["id"] is NSNull && value?["error"] is [String: Any])
    }
}
