import Foundation
import Proxy
import TestSupport
import Testing

@Suite("a placeholder that no credential replaces leaves by no way", .stopsProxies, .timeLimit(.minutes(1)))
struct PlaceholderGuardTests {
    private static let text = "PUT-THE-TOKEN-HERE"
    private static let prefix = "heimdallr1_c29tZXRoaW5n"
    private static func basic(_ pair: String) -> String { "Basic " + Data(pair.utf8).base64EncodedString() }

    /// `api.test` replaces the text, the other hosts do not, in different ways.
    private static let more = """
        - {host: plain.test, url: ORIGIN}
        - {host: kept.test, url: ORIGIN, client: api, allow_plaintext: true, on_existing: keep}
        - {host: other.test, url: ORIGIN, allow_plaintext: true, require_placeholder: ANOTHER-DUMMY,
           inject: {header: X-Api-Key, value: k}}
        - {host: edited.test, url: ORIGIN, remove_headers: X-Secret}
        """

    private func proxy(_ upstream: String = "", isLogged: Bool = false) async throws -> ProxyInProcess {
        try await ProxyInProcess(
            upstream: "require_placeholder: \(Self.text)\n\(upstream)",
            proxy: "unmatched: forward\nprivate_networks: [127.0.0.0/8]", more: Self.more, isLogged: isLogged)
    }

    private static let ways = [text, prefix].flatMap { text in
        [
            "Authorization: Bearer \(text)", "Authorization: \(text)", "Authorization: \(basic("me:\(text)"))",
            "Authorization: \(basic("\(text):x"))", "X-Api-Key: \(text)", "Cookie: a=b; session=\(text)",
            "X-Auth: \(basic("long-name:\(text)"))", "Referer: http://a.test/?access_token=\(text)",
            "Sec-WebSocket-Protocol: base64url.bearer.\(Data(text.utf8).base64EncodedString())",
            "X-\(text): 1", "Cookie: t=%50UT-THE-TOKEN-HERE%68eimdallr1_x",
            "Authorization: \(basic("me:" + text.replacing("-", with: "%2D").replacing("_", with: "%5F")))",
            "Cookie: t=%2%\(String(text.utf8.first ?? 0, radix: 16))\(text.dropFirst())", "Cookie: t=%25%5\(text)",
        ]
    }

    @Test(arguments: ways) func `no field takes a placeholder to a host that does not replace it`(
        field: String
    ) async throws {
        let proxy = try await proxy()
        let host = "127.0.0.1:\(try #require(UInt16(proxy.origin.authority.split(separator: ":").last ?? "")))"
        for url in ["http://plain.test/", "http://kept.test/", "http://other.test/", "http://\(host)/"] {
            let response = try await proxy.request("GET", url, fields: [field])
            #expect(response.status == 403, "\(url)")
            #expect(response.text.contains("placeholder-elsewhere"))
            #expect(!response.text.contains(Self.text) && !response.text.contains(Self.prefix))
        }
        #expect(proxy.origin.requests.isEmpty)
        // The connection of an unlisted host carries other requests.
        #expect(try await proxy.request("GET", "http://\(host)/", fields: ["Authorization: Bearer own"]).status == 200)
    }

    @Test(arguments: [
        "/?access_token=TEXT", "/?a=1&b=x%3DTEXT", "/a/TEXT", "/botTEXT/getMe", "/?a=%50UT%2dTHE-TOKEN-HERE",
        "/%2550UT-THE-TOKEN-HERE", "/%25%35%30UT-THE-TOKEN-HERE", "/?t=UFVULVRIRS1UT0tFTi1IRVJF",
    ])
    func `no address takes a placeholder anywhere, nor does a log`(target: String) async throws {
        let proxy = try await proxy(isLogged: true)
        let target = target.replacing("TEXT", with: Self.text)
        for host in ["plain.test", "kept.test", "api.test"] {
            let response = try await proxy.request(
                "GET", "http://\(host)\(target)", fields: ["Authorization: Bearer \(Self.text)"])
            #expect(response.status == 403)
        }
        #expect(try await proxy.request("GET", "http://\(Self.prefix).test/").status == 403)
        // Hosts are sent in lower case.
        #expect(try await proxy.request("GET", "http://HEIMDALLR1_abc.localhost/").status == 403)
        #expect(
            try await proxy.send("CONNECT \(Self.prefix).test:443 HTTP/1.1\r\nHost: a\r\n\r\n", method: "CONNECT")
                .status
                == 403)
        // A head that can't be parsed is logged as far as it was read.
        #expect(try await proxy.send("GET /\(Self.text) \u{1}\r\n\r\n").status == 400)
        #expect(try await proxy.send("GET /\(Self.text)\u{1} HTTP/1.1\r\n\r\n").status == 400)
        #expect(proxy.origin.requests.isEmpty)
        try await eventually("the records") { proxy.log.all.count == 8 }
        for record in proxy.log.all {
            let shown = String(decoding: record.path + record.host + record.requestID, as: UTF8.self)
            for text in [Self.text, Self.prefix, "UT-THE-TOKEN-HERE", "UFVULVRIRS1"] { #expect(!shown.contains(text)) }
        }
    }

    @Test(arguments: ["X-Request-Id: TEXT", "User-Agent: TEXT"])
    func `a refused request's own ID is in no log`(field: String) async throws {
        let proxy = try await proxy(isLogged: true)
        let response = try await proxy.request(
            "GET", "http://plain.test/", fields: [field.replacing("TEXT", with: Self.text)])
        try expectProblem(response, "placeholder-elsewhere", upstream: "plain.test")
        #expect(!response.text.contains(Self.text))
        try await eventually("the record") { proxy.log.all.count == 1 }
        let record = try #require(proxy.log.all.first)
        #expect(record.reason == "placeholder-elsewhere" && record.audit == .denied)
        #expect(!String(decoding: record.requestID, as: UTF8.self).contains(Self.text))
    }

    @Test func `at its own API the placeholder is replaced, and may stand nowhere else`() async throws {
        let proxy = try await proxy()
        let bearer = "Authorization: Bearer \(Self.text)"
        #expect(try await proxy.request(fields: [bearer]).status == 200)
        #expect(proxy.origin.requests.map(\.authorization) == [["Bearer T1"]])
        for fields in [
            [bearer, "X-Copy: \(Self.text)"], [bearer, "authorization: Bearer own"], ["X-Api-Key: \(Self.text)"],
        ] {
            try expectProblem(try await proxy.request(fields: fields), "placeholder-elsewhere")
        }
        #expect(try await proxy.request("TRACE", fields: [bearer]).status == 403)
        // Fields that do not leave take nothing along.
        #expect(try await proxy.request(fields: ["Connection: X-Copy", "X-Copy: \(Self.text)"]).status == 200)
        let edited = try await proxy.request("GET", "http://edited.test/", fields: ["X-Secret: \(Self.text)"])
        #expect(edited.status == 200)
    }

    @Test func `a request without a placeholder passes, with escapes and base64 of its own`() async throws {
        let proxy = try await proxy()
        let response = try await proxy.request(
            "GET", "http://plain.test/a%20b%2Fc?q=%50LACE&x=%25&%zz&u=%u0041",
            fields: ["Authorization: \(Self.basic("me:own"))", "X-Word: PUT-THE-TOKEN", "Cookie: heimdallr=1"])
        #expect(response.status == 200)
        #expect(proxy.origin.requests.first?.target == "/a%20b%2Fc?q=%50LACE&x=%25&%zz&u=%u0041")
    }

    @Test func `a trailer with a placeholder is left out`() async throws {
        let proxy = try await proxy()
        let response = try await proxy.send(
            "POST http://plain.test/ HTTP/1.1\r\nHost: plain.test\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n"
                + "X-Sum: 3\r\nX-Token: \(Self.text)\r\n\r\n", method: "POST")
        #expect(response.status == 200)
        let request = try #require(try await proxy.origin.completeRequests(1).first)
        #expect(request.trailers.map(\.description) == ["X-Sum: 3"])
    }

    @Test func `a WebSocket handshake and HTTP 2 take none along`() async throws {
        let proxy = try await proxy()
        let fields = ["Authorization: Bearer \(Self.text)", "Connection: Upgrade"]
        for offer in ["websocket", "\(Self.text)"] {
            let response = try await proxy.request(
                "GET", "http://plain.test/chat", fields: fields + ["Upgrade: \(offer)"])
            #expect(response.status == 403)
        }
        let run = try await ChildProcess.run(
            [
                "curl", "-sS", "--http2-prior-knowledge", "-m", "20", "--connect-to",
                "plain.test:80:127.0.0.1:\(proxy.port)",
                "-H", "Cookie: a=\(Self.text)", "-w", "%{http_code}", "-o", "/dev/null", "http://plain.test/",
            ], environment: ["no_proxy": nil, "NO_PROXY": nil])
        #expect(run.output == "403", "\(run.transcript)")
        #expect(proxy.origin.requests.isEmpty)
    }

    @Test func `a request in TLS that the proxy opens takes none along`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "require_placeholder: \(Self.text)",
            more: "- {host: open.test, url: ORIGIN, intercept: true}")
        let folder = try TemporaryDirectory()
        let roots = try folder.write(try #require(proxy.server.interception).rootsPEM, to: "roots.pem")
        let run = try await ChildProcess.run(
            [
                "curl", "-sS", "--cacert", roots, "-x", "http://127.0.0.1:\(proxy.port)", "-m", "20",
                "-H", "Authorization: Bearer \(Self.text)", "-w", "%{http_code}", "-o", "/dev/null",
                "https://open.test/",
            ], environment: ["no_proxy": nil, "NO_PROXY": nil, "SSL_CERT_FILE": nil])
        #expect(run.output == "403", "\(run.transcript)")
        #expect(proxy.origin.requests.isEmpty)
    }

    /// A text such as `none` occurs in ordinary fields.
    @Test func `a short text is looked for where credentials stand`() async throws {
        let proxy = try await ProxyInProcess(
            upstream: "require_placeholder: none", more: "- {host: plain.test, url: ORIGIN}")
        for field in ["Authorization: Bearer none", "X-Api-Key: none", "Authorization: \(Self.basic("me:none"))"] {
            #expect(try await proxy.request("GET", "http://plain.test/", fields: [field]).status == 403)
        }
        for field in ["Cookie: none", "X-Words: none or some", "If-None-Match: none1"] {
            #expect(try await proxy.request("GET", "http://plain.test/none?none=none", fields: [field]).status == 200)
        }
    }
}
