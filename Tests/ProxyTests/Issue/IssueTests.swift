import Cryptography
import Foundation
import Reports
import TestSupport
import Testing

@testable import Proxy

@Suite("a program's own OAuth gets placeholders, and its requests the token", .stopsProxies, .timeLimit(.minutes(1)))
struct IssueTests {
    private static func basic(_ pair: String, _ name: String = "Authorization") -> String {
        "\(name): Basic \(Data(pair.utf8).base64EncodedString())"
    }

    private static let form = "Content-Type: application/x-www-form-urlencoded"
    private static let question = "grant_type=client_credentials&client_id=legacy&client_secret=dummy"

    private func proxy(
        _ upstream: String = "", issue: String = "", proxy: String = "", more: String = "", isLogged: Bool = false,
        key: UInt8? = nil, answer: @escaping RecordingOrigin.Handler = { try $0.respond(body: "ok") }
    ) async throws -> ProxyInProcess {
        try await ProxyInProcess(
            upstream: "require_placeholder: issued\n\(upstream)", proxy: proxy,
            more: """
                - host: idp.test
                  paths: [/token]
                  issue:
                    - client: api
                      client_id: legacy
                      client_secret: dummy
                \(issue.indented(6))
                - {host: plain.test, url: ORIGIN}
                \(more)
                """, isLogged: isLogged, placeholderKey: key.map { SecretBytes([UInt8](repeating: $0, count: 32)) },
            answer: answer)
    }

    private func ask(
        _ proxy: ProxyInProcess, _ body: String = Self.question, fields: [String] = [Self.form], method: String = "POST"
    ) async throws -> RawResponse {
        try await proxy.request(method, "http://idp.test/token", fields: fields, body: body)
    }

    private func json(_ response: RawResponse) throws -> [String: Any] {
        try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
    }

    private func placeholder(_ proxy: ProxyInProcess, fields: [String] = [Self.form]) async throws -> String {
        try #require(try json(try await ask(proxy, fields: fields))["access_token"] as? String)
    }

    @Test func `the answer has what libraries demand, and nothing is forwarded or waited for`() async throws {
        let proxy = try await proxy()
        let response = try await ask(proxy, Self.question + "&scope=b+a")
        #expect(response.status == 200)
        #expect(response.field("Cache-Control") == "no-store" && response.field("Content-Type") == "application/json")
        let answer = try json(response)
        #expect((answer["access_token"] as? String)?.hasPrefix("heimdallr1_") == true)
        #expect(answer["token_type"] as? String == "Bearer" && answer["scope"] as? String == "b a")
        #expect(response.text.contains(#""expires_in":3600,"#))
        #expect(answer.count == 4)
        #expect(proxy.origin.requests.isEmpty && proxy.endpoint.requests.isEmpty)
    }

    @Test func `answer adds members, and expires_in is told`() async throws {
        let proxy = try await proxy(
            issue: "expires_in: 20m\nanswer: {token_type: bearer, ok: true, instance_url: 'https://x.test', n: 1}")
        let response = try await ask(proxy)
        #expect(response.text.contains(#""expires_in":1200,"#) && response.text.contains(#""ok":true"#))
        #expect(response.text.contains(#""n":1"#))
        let answer = try json(response)
        #expect(answer["token_type"] as? String == "bearer" && answer["instance_url"] as? String == "https://x.test")
    }

    @Test func `beside a signature of AWS, too, only a good placeholder gets the token`() async throws {
        let proxy = try await proxy(
            """
            inject:
              - {header: X-Token, scheme: ""}
              - {sigv4: {region: r, service: s, access_key_id: AKID, secret_access_key: key}}
            """)
        let good = try await placeholder(proxy)
        let signed = "AWS4-HMAC-SHA256 Credential=KEY/20260101/r/s/aws4_request, SignedHeaders=host, Signature=0"
        for (fields, status) in [
            (["Authorization: heimdallr1_"], 401), (["Authorization: Bearer heimdallr1_garbage"], 401),
            (["Authorization: \(signed.replacing("KEY", with: "heimdallr1_"))"], 401),
            (["Authorization: Bearer \(good)"], 200), (["Authorization: \(signed.replacing("KEY", with: good))"], 200),
            (["X-Token: heimdallr1_"], 401), (["X-Token: \(good)"], 200),
        ] {
            #expect(try await proxy.request("GET", "http://api.test/", fields: fields).status == status, "\(fields)")
        }
        let query = "X-Amz-Signature=0&X-Amz-Credential="
        #expect(try await proxy.request("GET", "http://api.test/?\(query)heimdallr1_%2Fx").status == 401)
        #expect(try await proxy.request("GET", "http://api.test/?\(query)\(good)%2Fx").status == 200)
        #expect(proxy.origin.requests.allSatisfy { !"\($0.target)\($0.fields)".contains("heimdallr1_") })
    }

    @Test(arguments: ["Bearer P", "bearer P", "P", "Token  P", "BASIC"])
    func `a placeholder is replaced by the token, whatever its scheme`(value: String) async throws {
        let proxy = try await proxy()
        let placeholder = try await placeholder(proxy)
        let field =
            value == "BASIC"
            ? Self.basic("me:\(placeholder)") : "Authorization: " + value.replacing("P", with: placeholder)
        for number in 1...3 {
            #expect(try await proxy.request(fields: [field]).status == 200)
            #expect(proxy.origin.requests.count == number)
            #expect(proxy.origin.requests.last?.authorization == ["Bearer T1"])
        }
        // Other requests go out as they are.
        #expect(try await proxy.request(fields: ["Authorization: Bearer own"]).status == 200)
        #expect(proxy.origin.requests.last?.authorization == ["Bearer own"])
    }

    @Test func `a placeholder is replaced in other fields and in the query, where inject puts the token`() async throws
    {
        for (inject, target, field) in [
            ("inject: {header: X-Api-Key, scheme: ''}", "/", "X-Api-Key: P"),
            ("inject: {query: access_token}\nallow_deprecated: true", "/?access_token=P&a=1", "Accept: */*"),
        ] {
            let proxy = try await proxy(inject)
            let placeholder = try await placeholder(proxy)
            let (url, sent) = (
                "http://api.test" + target.replacing("P", with: placeholder), field.replacing("P", with: placeholder)
            )
            #expect(try await proxy.request("GET", url, fields: [sent]).status == 200)
            let request = try #require(proxy.origin.requests.last)
            #expect(request.target.contains("access_token=T1") || request.values("X-Api-Key") == ["T1"])
            #expect(!request.target.contains(placeholder))
        }
    }

    @Test func `a refused token is replayed under the placeholder`() async throws {
        let proxy = try await proxy { exchange in
            try exchange.head.authorization == ["Bearer T2"] ? exchange.respond(body: "ok") : exchange.respond(401)
        }
        let placeholder = try await placeholder(proxy)
        #expect(try await proxy.request(fields: ["Authorization: Bearer \(placeholder)"]).status == 200)
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"], ["Bearer T2"]])
    }

    @Test func `a placeholder leaves to no other host, and stands at its own in no other field`() async throws {
        let proxy = try await proxy(
            proxy: "unmatched: forward\nprivate_networks: [127.0.0.0/8]",
            more: "- {host: kept.test, url: ORIGIN, client: api, allow_plaintext: true, on_existing: keep}")
        let placeholder = try await placeholder(proxy)
        let bearer = "Authorization: Bearer \(placeholder)"
        for host in ["plain.test", "kept.test", proxy.origin.authority] {
            for field in [bearer, Self.basic("me:\(placeholder)"), "Cookie: a=\(placeholder)"] {
                let response = try await proxy.request("GET", "http://\(host)/", fields: [field])
                #expect(response.status == 403 && response.text.contains("placeholder-elsewhere"))
            }
            #expect(try await proxy.request("GET", "http://\(host)/?t=\(placeholder)").status == 403)
        }
        #expect(try await proxy.request(fields: [bearer, "X-Copy: \(placeholder)"]).status == 403)
        #expect(try await proxy.request("GET", "http://api.test/\(placeholder)", fields: [bearer]).status == 403)
        #expect(proxy.origin.requests.isEmpty)
    }

    // MARK: Callers, clients, keys and ends

    @Test func `another caller's placeholder is refused, and the same caller may use another listener`() async throws {
        let proxy = try await proxy(proxy: "users: {alice: a, bob: b}")
        let (alice, bob) = (Self.basic("alice:a", "Proxy-Authorization"), Self.basic("bob:b", "Proxy-Authorization"))
        let placeholder = try await placeholder(proxy, fields: [Self.form, alice])
        let bearer = "Authorization: Bearer \(placeholder)"
        #expect(try await proxy.request(fields: [alice, bearer]).status == 200)
        let other = try await proxy.request(fields: [bob, bearer])
        try expectProblem(other, "placeholder-foreign")
        #expect(other.field("WWW-Authenticate") == "Bearer error=\"invalid_token\"")
        #expect(proxy.origin.requests.count == 1)
    }

    @Test func `a placeholder is good at each proxy with the same key, and at no other`() async throws {
        let first = try await proxy(key: 1)
        let bearer = "Authorization: Bearer \(try await placeholder(first))"
        #expect(try await proxy(key: 1).request(fields: [bearer]).status == 200)
        try expectProblem(try await proxy(key: 2).request(fields: [bearer]), "placeholder-foreign")
        try expectProblem(try await proxy().request(fields: [bearer]), "placeholder-foreign")
    }

    @Test func `an ended one, another client's and a forged one are refused`() async throws {
        let proxy = try await proxy(key: 1)
        let seal = PlaceholderSeal(keys: [SecretBytes([UInt8](repeating: 1, count: 32))])
        func request(_ text: [UInt8]) async throws -> RawResponse {
            try await proxy.request(fields: ["Authorization: Bearer \(String(decoding: text, as: UTF8.self))"])
        }
        let ended = try await request(try seal.seal(client: "api", caller: "", end: WallClock.now() - 60))
        try expectProblem(ended, "placeholder-ended")
        #expect(ended.field("WWW-Authenticate") == "Bearer error=\"invalid_token\"")
        let end = WallClock.now() + 3600
        try expectProblem(
            try await request(try seal.seal(client: "crm", caller: "", end: end)), "placeholder-elsewhere")
        #expect(try await request(try seal.seal(client: "api", caller: "", end: end)).status == 200)
        try expectProblem(try await request(PlaceholderSeal.prefix), "placeholder-foreign")
        try expectProblem(try await request(PlaceholderSeal.prefix + Array("AAAA".utf8)), "placeholder-foreign")
        // With a good one beside it, a forged one is still refused.
        let good = String(decoding: try seal.seal(client: "api", caller: "", end: end), as: UTF8.self)
        let both = try await proxy.request(
            fields: ["Authorization: Bearer \(good)", "authorization: Bearer heimdallr1_x"])
        try expectProblem(both, "placeholder-foreign")
        #expect(proxy.origin.requests.count == 1)
    }

    // MARK: Refused token requests

    @Test(arguments: [
        ("grant_type=client_credentials&client_id=legacy&client_secret=wrong", 401, "invalid_client"),
        ("grant_type=client_credentials&client_id=other&client_secret=dummy", 401, "invalid_client"),
        ("grant_type=client_credentials&client_id=legacy", 401, "invalid_client"),
        ("grant_type=password&client_id=legacy&client_secret=dummy&username=ann&password=x", 400, "invalid_grant"),
        ("grant_type=authorization_code&code=x&client_id=legacy&client_secret=dummy", 400, "unsupported_grant_type"),
        (question + "&grant_type=password", 400, "invalid_request"), ("", 400, "invalid_request"),
    ])
    func `a refusal is OAuth's JSON, and never 503`(body: String, status: Int, error: String) async throws {
        let proxy = try await proxy(isLogged: true)
        let response = try await ask(proxy, body)
        #expect(response.status == status && response.field("Cache-Control") == "no-store")
        #expect(response.field("Content-Type") == "application/json")
        let answer = try json(response)
        #expect(answer["error"] as? String == error && (answer["error_description"] as? String)?.isEmpty == false)
        if status == 401 { #expect(response.field("WWW-Authenticate")?.hasPrefix("Basic ") == true) }
        try await eventually("the record") { proxy.log.all.count == 1 }
        let record = try #require(proxy.log.all.first)
        #expect(record.reason == "token-request-refused" && record.audit == .denied)
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `GET, a long body and a web page are refused`() async throws {
        let proxy = try await proxy()
        let get = try await proxy.request("GET", "http://idp.test/token?\(Self.question)")
        #expect(get.status == 405 && get.field("Allow") == "POST")
        #expect(try json(get)["error"] as? String == "invalid_request")
        let long = try await ask(proxy, Self.question + "&x=" + String(repeating: "a", count: 70_000))
        #expect(long.status == 413)
        #expect(try json(long)["error"] as? String == "invalid_request")
        for field in ["Origin: http://page.test", "Sec-Fetch-Site: cross-site", "User-Agent: Mozilla/5.0 Gecko/1"] {
            try expectProblem(try await ask(proxy, fields: [Self.form, field]), "web-page", upstream: "idp.test")
        }
        #expect(try await proxy.request("POST", "http://idp.test/other", body: Self.question).status == 403)
    }

    @Test func `Basic in both spellings, JSON and chunks are taken, and the connection serves on`() async throws {
        let proxy = try await proxy(
            more: "- {host: two.test, paths: [/token], issue: {client: api, client_id: a b, client_secret: s/+ }}")
        let grant = "grant_type=client_credentials"
        for pair in ["a b:s/+", "a+b:s%2F%2B"] {
            let answer = try await proxy.request(
                "POST", "http://two.test/token", fields: [Self.form, Self.basic(pair)], body: grant)
            #expect(answer.status == 200, "\(answer.text)")
        }
        let body = #"{"grant_type":"client_credentials","client_id":"legacy","client_secret":"dummy"}"#
        #expect(try await ask(proxy, body, fields: ["Content-Type: application/json"]).status == 200)
        let client = try await proxy.connect()
        for _ in 0..<2 {
            try await client.send(
                "POST http://idp.test/token HTTP/1.1\r\nHost: idp.test\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ngrant\r\n"
            )
            let rest = Self.question.dropFirst(5)
            try await client.send("\(String(rest.utf8.count, radix: 16))\r\n\(rest)\r\n0\r\n\r\n")
            #expect(try await client.response().status == 200)
        }
    }

    @Test func `log and audit name the client, and no secret or placeholder`() async throws {
        let proxy = try await proxy(isLogged: true)
        let placeholder = try await placeholder(proxy)
        _ = try await proxy.request(fields: ["Authorization: Bearer \(placeholder)"])
        try await eventually("the records") { proxy.log.all.count == 2 }
        let records = proxy.log.all
        let (asked, used) = (try #require(records.first), try #require(records.last))
        #expect(asked.audit == .issued && asked.client == "api" && asked.status == 200)
        #expect(used.audit == .given && used.client == "api")
        for text in [placeholder, "dummy"] { #expect(!"\(asked) \(used)".contains(text)) }
    }

    @Test func `a program asks at its own listener and uses the placeholder by the proxy`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "require_placeholder: issued",
            more: "- {host: idp.test, listen: '127.0.0.1:0', issue: {client: api, client_id: legacy}}")
        let answer = try await RawClient.exchange(
            port: proxy.upstreamPort,
            "POST /oauth/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: \(Self.question.utf8.count)\r\n\r\n\(Self.question)",
            method: "POST")
        let placeholder = try #require(try json(answer)["access_token"] as? String)
        #expect(try await proxy.request(fields: ["Authorization: Bearer \(placeholder)"]).status == 200)
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"]])
    }

    @Test func `why shows the entries, and nothing that is forwarded`() async throws {
        let proxy = try await proxy()
        let why = proxy.server.explain(method: "POST", url: "http://idp.test/token", fields: [])
        guard case .upstream(let route) = why else {
            Issue.record("\(why)")
            return
        }
        #expect(route.destination == "the proxy itself")
        #expect(route.client == nil && route.unsigned == "the answer has a placeholder of api for legacy")
    }
}
