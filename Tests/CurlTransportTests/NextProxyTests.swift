import CurlTransport
import HTTPMessage
import TestSupport
import Testing
import WireText

@Suite("the proxy in between, when one is wanted", .timeLimit(.minutes(1)))
struct NextProxyTests {
    @Test func `plain http goes to the next proxy in absolute form, without a field of libcurl's own`() async throws {
        let next = try RecordingOrigin { try $0.respond(body: "by the way") }
        let pool = try Calls { $0.nextProxy = .url(next.url) }
        for number in 0..<3 {
            let record = try await pool.send(
                Request(.plain(80, host: "far.example"), "GET", "/x/../\(number)?y"))
            #expect(record.text == "by the way")
        }
        #expect(next.requests.map(\.target) == (0..<3).map { "http://far.example/x/../\($0)?y" })
        let fields = ["Host: far.example", "User-Agent: \(Product.userAgent)"]
        #expect(next.requests.allSatisfy { $0.fields.map(\.description) == fields })
    }

    @Test func `a call over https goes through the next proxy's tunnel, checked end to end`() async throws {
        let log = Recorder<String>()
        let next = try Listener.tunnel(heads: log)
        let nginx = try await Nginx.secure(["DNS:far.example"])
        let file = nginx.authority.certificateFile
        let pool = try Calls {
            $0.nextProxy = .url("http://127.0.0.1:\(next.port)")
            $0.trustAnchors = .only(file: file)
        }
        let origin = Origin.secure(nginx.httpsPort, host: "far.example")
        var request = Request(origin, "POST", "/x")
        request.fields = [("Authorization", "Bearer secret")]
        request.body = [1, 2, 3] as [UInt8]
        let record = try await pool.send(request)
        #expect(record.error == nil)
        #expect(record.text.contains("authorization: Bearer secret\n"))
        let heads = log.all
        #expect(heads.count == 1)
        #expect(heads.first?.hasPrefix("CONNECT far.example:\(nginx.httpsPort) HTTP/1.1\r\n") == true)
        // The upstream's fields don't reach the next proxy.
        #expect(heads.first?.contains("secret") == false)
        #expect(heads.first?.contains("\r\nUser-Agent: \(Product.userAgent)\r\n") == true)
        let wrong = try await pool.send(Request(.secure(nginx.httpsPort, host: "near.example")))
        #expect(wrong.error?.kind == .tlsCertificate)
    }

    @Test(arguments: [
        "HTTP/1.1 403 Forbidden\r\n\r\n", "HTTP/1.1 407 Who\r\nProxy-Authenticate: Basic\r\n\r\n", "",
        "garbage\r\n\r\n",
    ])
    func `a call whose next proxy refuses the tunnel fails as the proxy's fault`(answer: String) async throws {
        let log = Recorder<String>()
        let next = try Listener.tunnel(answer, heads: log)
        let pool = try Calls { $0.nextProxy = .url("http://127.0.0.1:\(next.port)") }
        let record = try await pool.send(Request(.secure(443, host: "far.example")))
        #expect(record.error?.kind == .proxy)
        #expect(record.text.isEmpty)
        #expect(log.all.count == 1)
    }

    @Test func `a call whose next proxy is not there fails as the proxy's fault`() async throws {
        let port = try freePort()
        let pool = try Calls { $0.nextProxy = .url("http://127.0.0.1:\(port)") }
        for origin in [Origin.plain(80, host: "far.example"), .secure(443, host: "far.example")] {
            #expect(try await pool.send(Request(origin)).error?.kind == .proxy)
        }
        let unknown = try Calls { $0.nextProxy = .url("http://does-not-exist.invalid:3128") }
        #expect(try await unknown.send(Request(.plain(80, host: "far.example"))).error?.kind == .proxy)
    }
}
