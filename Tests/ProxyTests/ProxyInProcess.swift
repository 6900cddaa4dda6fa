import Configuration
import Cryptography
import CurlTransport
import Foundation
import Heimdallr
import HeimdallrCurl
import Proxy
import Reactor
import Synchronization
import TestSupport
import Testing

/// The proxy in this process, between programs of the test, a recording origin and a token endpoint.
///
/// `http://api.test/` leads to `origin`, with a token of the client `api`: T1, and T2, T3, … for later requests.
final class ProxyInProcess: Sendable {
    let origin: RecordingOrigin
    let endpoint: TokenEndpoint
    let server: ProxyServer
    /// The access log, if `isLogged`.
    let log = Recorder<RequestRecord>()
    private let loops: [EventLoop]
    /// Keeps the token.
    let client: Heimdallr
    private let peer: (any Sendable)?

    /// Of `proxy.listen`.
    var port: UInt16 { server.addresses[0].port }
    /// Port of the second listener: another one of `proxy.listen`, or that of the first upstream with its own `listen`.
    var upstreamPort: UInt16 { server.addresses[1].port }

    /// How the client `api` keeps its token, where a test is about that.
    struct Keeping {
        var clock = HeimdallrClock.system
        var change: (inout HeimdallrConfiguration) -> Void = { _ in }
        /// Put between the client and libcurl.
        var http: (any HeimdallrHTTPClient) -> any HeimdallrHTTPClient = { $0 }
        var onTokenRequest: @Sendable (TokenRequestReport) -> Void = { _ in }
    }

    /// - Parameters:
    ///   - upstream: further lines of the upstream `api.test`.
    ///   - proxy: further lines of the section `proxy`.
    ///   - more: further entries of `upstreams`.
    ///   - peer: lives as long as the proxy.
    ///   - url: put behind the origin's own in `url`.
    ///   - placeholderKey: `nil` for a random one.
    ///   - change: what the text can't say yet.
    init(
        upstream: String = "", proxy: String = "", more: String = "", url: String = "", threads: Int = 1,
        endpoint: TokenEndpoint? = nil, keeping: Keeping = Keeping(), observer: ProxyObserver = ProxyObserver(),
        isLogged: Bool = false, peer: (any Sendable)? = nil, placeholderKey: SecretBytes? = nil,
        answer: @escaping RecordingOrigin.Handler = { try $0.respond(body: "ok") },
        change: (inout Configuration) -> Void = { _ in }
    ) async throws {
        self.peer = peer
        origin = try RecordingOrigin(answer)
        self.endpoint = try endpoint ?? TokenEndpoint { _, number in .token("T\(number + 1)") }
        let text = """
            proxy:
              listen: 127.0.0.1:0
              threads: \(threads)
            \(proxy.indented(2))
            clients:
              api:
                token_endpoint: \(self.endpoint.url)
                client_id: the-client
                client_secret: the-secret
                allow_plaintext: true
            upstreams:
              - host: api.test
                url: \(origin.url)\(url)
                client: api
                allow_plaintext: true
                # The origin knows no HTTP/2, which gRPC calls would use.
                http2: false
            \(upstream.indented(4))
            \(more.replacing("ORIGIN", with: origin.url).indented(2))
            """
        var (configuration, _) = try Configuration.parse(yaml: text, file: "test.yaml", environment: [:])
        change(&configuration)
        var loops: [EventLoop] = []
        for index in 0..<threads { loops.append(try EventLoop.start(name: "loop \(index)")) }
        self.loops = loops
        var settings = HeimdallrConfiguration(tokenEndpoint: self.endpoint.url)
        settings.allowPlaintext = true
        keeping.change(&settings)
        client = try Heimdallr(
            name: "api", configuration: settings,
            credentials: OAuthClientSecretCredentials(identifier: "the-client", secret: Secret("the-secret")),
            grant: ClientCredentialsGrant(),
            httpClient: keeping.http(CurlHTTPClient(BufferedClient(options: PoolOptions(), loop: loops[0]))),
            clock: keeping.clock, onTokenRequest: keeping.onTokenRequest)
        var observer = observer
        if isLogged { observer.accessLog = { [log] in log.append($0) } }
        server = try await ProxyServer(
            configuration, clients: ["api": client], loops: loops, observer: observer,
            users: configuration.proxy.users.mapValues { source in
                if case .file(let path) = source { return SecretFileProvider(path: path) }
                if case .literal(let text) = source { return Secret(text) }
                throw TestFailure("no such secret here")
            },
            credentials: CredentialSources { source in
                switch source {
                case .file(let path): SecretFileProvider(path: path)
                case .literal(let text): Secret(text)
                default: SecretClosureProvider { throw TestFailure("no such secret here") }
                }
            },
            interception: try Self.interception(configuration),
            placeholderKeys: placeholderKey.map { [$0] } ?? [])
        guard let keeper = Keeper.current else { throw TestFailure("the suite lacks the trait .stopsProxies") }
        keeper.proxies.withLock { $0.append(self) }
    }

    private static func interception(_ configuration: Configuration) throws -> Interception? {
        guard configuration.opensTLS else { return nil }
        let names = configuration.interceptedNames
        return Interception(
            try CertificateAuthority.issue(for: names.hosts),
            intermediate: names.domains.isEmpty ? nil : try SigningIntermediate(for: names.domains.names))
    }

    fileprivate func stop() async {
        await server.drain(within: .zero)
        client.shutdown()
        for loop in loops { loop.stop() }
        origin.stop()
        endpoint.stop()
    }

    /// Stops the proxy's loop until the gate opens. The loop then finds all events at once.
    func holdLoop(until gate: Gate) async {
        let isHeld = Signal()
        loops[0].execute {
            isHeld.give()
            gate.wait()
        }
        await isHeld.wait()
    }

    /// Waits until the loops have handled all events so far.
    func isCaughtUp() async throws {
        for loop in loops {
            // The first turn may have begun before the last event.
            for _ in 0..<2 { try await loop.run {} }
        }
    }

    // MARK: Requests

    /// - Parameter request: sent at once.
    func connect(receiveBuffer: Int32? = nil, sending request: String = "") async throws -> RawClient {
        let client = try await RawClient.connect(port: port, receiveBuffer: receiveBuffer)
        if !request.isEmpty { try await client.send(request) }
        return client
    }

    /// Sends exactly these bytes on a new connection, and returns the answer.
    func send(_ request: String, method: String = "GET") async throws -> RawResponse {
        try await RawClient.exchange(port: port, request, method: method)
    }

    /// Sends `count` requests at once, each on its own connection, and returns their statuses. `whileWaiting` runs meanwhile.
    func statuses(of count: Int, whileWaiting: @Sendable () async throws -> Void = {}) async throws -> [Int] {
        try await withThrowingTaskGroup(of: Int.self) { group in
            for _ in 0..<count { group.addTask { try await self.request().status } }
            try await whileWaiting()
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    /// Sends an absolute-form request on a new connection.
    func request(
        _ method: String = "GET", _ url: String = "http://api.test/", fields: [String] = [], body: String? = nil
    ) async throws -> RawResponse {
        try await send(message(method, url, fields: fields, body: body), method: method)
    }
}

/// Holds what a test made until the test is over, and then stops it.
struct StoppingProxies: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func provideScope(
        for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
    ) async throws {
        guard testCase != nil else { return try await function() }
        let keeper = Keeper()
        let result: Result<Void, any Error>
        do {
            result = .success(try await Keeper.$current.withValue(keeper) { try await function() })
        } catch {
            result = .failure(error)
        }
        for proxy in keeper.proxies.withLock({ $0 }) { await proxy.stop() }
        try result.get()
    }
}

extension Trait where Self == StoppingProxies {
    static var stopsProxies: Self { StoppingProxies() }
}

private final class Keeper: Sendable {
    @TaskLocal static var current: Keeper?
    let proxies = Mutex<[ProxyInProcess]>([])
}

/// An absolute-form request for `url`.
func message(
    _ method: String = "GET", _ url: String = "http://api.test/", fields: [String] = [], body: String? = nil
) -> String {
    let host = url.dropFirst("http://".count).prefix { $0 != "/" && $0 != "?" }
    let length = body.map { ["Content-Length: \($0.utf8.count)"] } ?? []
    let lines = ["\(method) \(url) HTTP/1.1", "Host: \(host)"] + fields + length
    return lines.joined(separator: "\r\n") + "\r\n\r\n" + (body ?? "")
}

/// An upstream over TLS, signed by the client `api`.
/// - Parameter more: further keys, separated by commas.
func secureUpstream(_ host: String, _ port: UInt16, _ authority: PrivateCA, _ more: String = "") -> String {
    let more = more.isEmpty ? "" : "\(more), "
    let tls = "tls: {ca_file: \(authority.certificateFile)}"
    return "- {host: \(host), url: 'https://localhost:\(port)', client: api, \(more)\(tls)}"
}

extension RecordedRequest {
    /// Values of `Authorization`.
    var authorization: [String] { values("Authorization") }
}

/// Status and `Proxy-Status` error of each problem, by its word, as docs/errors.md promises them.
private let promises: [String: (status: Int, error: String)] = {
    let page = try? String(contentsOfFile: "\(Repository.root)/docs/errors.md", encoding: .utf8)
    let rows = page?.matches(of: /\| \[`([a-z-]+)`\]\(#.*?\) \| (\d+) \| \d+ \| `(\w+)` \|/) ?? []
    return Dictionary(uniqueKeysWithValues: rows.map { (String($0.1), (Int($0.2) ?? 0, String($0.3))) })
}()

/// Expects one of the proxy's own answers: status, `Proxy-Status` (RFC 9209), and a JSON body (RFC 9457) that agrees.
/// - Parameter status: where it is not the one of docs/errors.md.
func expectProblem(
    _ response: RawResponse, _ word: String, status: Int? = nil, upstream: String? = "api.test",
    sourceLocation: SourceLocation = #_sourceLocation
) throws {
    let promise = try #require(promises[word], sourceLocation: sourceLocation)
    let status = status ?? promise.status
    #expect(response.status == status, sourceLocation: sourceLocation)
    #expect(response.field("Proxy-Status") == "heimdallr-proxy; error=\(promise.error)", sourceLocation: sourceLocation)
    #expect(response.field("Content-Type") == "application/problem+json", sourceLocation: sourceLocation)
    let json = try #require(
        try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any], sourceLocation: sourceLocation)
    #expect(json["status"] as? Int == status, sourceLocation: sourceLocation)
    #expect(json["upstream"] as? String == upstream, sourceLocation: sourceLocation)
    #expect(json["type"] as? String == "urn:heimdallr-proxy:problem:\(word)", sourceLocation: sourceLocation)
    for name in ["title", "detail", "message"] {
        #expect((json[name] as? String)?.isEmpty == false, "\(name)", sourceLocation: sourceLocation)
    }
}
