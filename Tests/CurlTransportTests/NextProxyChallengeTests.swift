import CurlTransport
import HTTPMessage
import TestSupport
import Testing

@Suite("a next proxy that challenges", .timeLimit(.minutes(1)))
struct NextProxyChallengeTests {
    private static let digest = "Proxy-Authenticate: Digest realm=\"x\", nonce=\"n\", stale=true, qop=\"auth\"\r\n"
    private static let ntlm =
        "Proxy-Authenticate: NTLM TlRMTVNTUAACAAAAAAAAADgAAAAGAoEAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n"

    /// A next proxy that answers every request of every connection with this 407.
    private static func challenger(
        _ fields: String, body: String = "", closes: Bool = false, heads: Recorder<String>
    ) throws -> Listener {
        try Listener { peer in
            repeat {
                let (head, _) = peer.readHead()
                guard !head.isEmpty else { return }
                heads.append(head)
                let end = closes ? "Connection: close\r\n" : ""
                peer.write("HTTP/1.1 407 Who\r\n\(fields)\(end)Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            } while !closes
        }
    }

    @Test(arguments: [NextProxyLogin.digest, .ntlm], [false, true])
    func `a next proxy that challenges a thousand times gets three requests`(
        login: NextProxyLogin, closes: Bool
    ) async throws {
        let heads = Recorder<String>()
        let next = try Self.challenger(login == .ntlm ? Self.ntlm : Self.digest, closes: closes, heads: heads)
        let url = "http://user:pw@localhost:\(next.port)"
        let carriers = try await CarrierPoolOnLoop { $0.nextProxy = .url(url, login) }
        for origin in [Origin.plain(80, host: "far.example"), .secure(443, host: "far.example")] {
            let before = heads.all.count
            let failure = try await carriers.failure(origin)
            #expect(failure.kind == .proxy && failure.nextProxyStatus == 407, "\(failure)")
            #expect(failure.nextProxy?.proxy == "localhost:\(next.port)")
            #expect(heads.all.count - before == 3, "\(heads.all)")
            let call = try Calls { $0.nextProxy = .url(url, login) }
            #expect(try await call.send(Request(origin)).error?.nextProxyStatus == 407)
        }
        #expect(heads.all.allSatisfy { $0.hasPrefix("CONNECT far.example:") })
        #expect(!heads.all.contains { $0.contains("Basic") })
    }

    @Test(arguments: [NextProxyLogin.basic, .digest, .ntlm])
    func `a 407 with a body of five megabytes ends before the body`(login: NextProxyLogin) async throws {
        let heads = Recorder<String>()
        let fields = Self.digest + Self.ntlm + "Proxy-Authenticate: Basic\r\n"
        let next = try Self.challenger(fields, body: String(repeating: "x", count: 5 << 20), heads: heads)
        let carriers = try await CarrierPoolOnLoop {
            $0.nextProxy = .url("http://user:pw@127.0.0.1:\(next.port)", login)
        }
        let failure = try await carriers.failure(.secure(443, host: "far.example"))
        #expect(failure.nextProxyStatus == 407)
        #expect(failure.message.contains("its 407 has a body of 5242880 bytes"), "\(failure)")
        #expect(heads.all.count == 1)
    }

    @Test(arguments: [NextProxyLogin.digest, .ntlm])
    func `a password for one method is never sent by another one`(login: NextProxyLogin) async throws {
        let heads = Recorder<String>()
        let next = try Self.challenger("Proxy-Authenticate: Basic realm=\"x\"\r\n", heads: heads)
        let carriers = try await CarrierPoolOnLoop {
            $0.nextProxy = .url("http://user:pw@127.0.0.1:\(next.port)", login)
        }
        let failure = try await carriers.failure(.secure(443, host: "far.example"))
        #expect(!heads.all.contains { $0.contains("Basic") }, "\(heads.all)")
        let words = "takes basic, and `auth` of `proxy` is \(login.method): write {url: …, auth: basic}"
        #expect(failure.nextProxy?.remedy == words)
    }

    @Test(arguments: [
        (NextProxyLogin.basic, "http://127.0.0.1", "Basic", "requires a name and password: write http://NAME"),
        (.basic, "http://user:pw@127.0.0.1", "Basic", "refuses the name and password in `proxy`"),
        (.basic, "http://user:pw@127.0.0.1", "Negotiate, NTLM", "write {url: …, auth: negotiate}"),
        (.basic, "http://user:pw@127.0.0.1", "Frob x=y", "refuses the name and password in `proxy`"),
    ])
    func `a refusal by 407 says what to change, with a tunnel and without`(
        login: NextProxyLogin, url: String, asked: String, remedy: String
    ) async throws {
        let heads = Recorder<String>()
        let next = try Self.challenger("Proxy-Authenticate: \(asked)\r\n", heads: heads)
        let calls = try Calls { $0.nextProxy = .url("\(url):\(next.port)", login) }
        for origin in [Origin.plain(80, host: "far.example"), .secure(443, host: "far.example")] {
            let error = try await calls.send(Request(origin)).error
            #expect(error?.kind == .proxy && error?.nextProxyStatus == 407)
            #expect(error?.nextProxy?.proxy == "127.0.0.1:\(next.port)")
            #expect(error?.nextProxy?.remedy?.contains(remedy) == true, "\(String(describing: error))")
        }
    }
}
