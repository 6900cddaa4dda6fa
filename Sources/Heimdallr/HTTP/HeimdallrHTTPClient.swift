internal import HTTPMessage
internal import WireText

/// Sends HTTP requests to the authorization server: for tokens, metadata, keys, logins and revocation.
///
/// An implementation must keep these rules:
/// - It honours `HeimdallrHTTPRequest.timeout`, from connect to the last byte, and `HeimdallrHTTPRequest.maxBodyBytes`.
/// - It never follows a redirect and never adds credentials.
/// - It throws as soon as the calling task is cancelled.
public protocol HeimdallrHTTPClient: Sendable {
    /// Sends one request and returns the whole response, whatever its status. Called on any thread, concurrently.
    /// - Throws: `HeimdallrHTTPClientError` if there is no response. Other errors count as `.other`.
    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse
}

/// Reason why there is no response. The texts are fixed sentences, but `tls` may quote the peer's certificate.
public enum HeimdallrHTTPClientError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The connection could not be made; nothing was sent.
    case connect
    /// The next proxy refused, or can't be reached. Nothing was sent to the server. Value: the status of its refusal.
    case nextProxy(Int?)
    /// The connection broke before the response was complete. The server may have processed the request.
    case cut
    /// The host's name could not be resolved.
    case dns
    /// TLS failed. Value: the TLS library's message, or an empty text. May quote the peer's certificate.
    case tls(String)
    /// `HeimdallrHTTPRequest.timeout` passed.
    case timeout
    /// The response's body is longer than `HeimdallrHTTPRequest.maxBodyBytes`.
    case bodyTooLarge
    /// This machine lacks what a connection needs. Nothing was sent. Values: two sentences without a capital letter.
    case shortage(fault: String, remedy: String)
    /// The server speaks HTTP/2 only, and the request came over HTTP/1.1. Value: whether over https.
    case http2Only(isSecure: Bool)
    /// The response is not HTTP, or the fault has no other case.
    case other

    public var description: String {
        switch self {
        case .connect: "the connection could not be made"
        case .nextProxy(let status?): "the next proxy refused the connection: it answered \(status)"
        case .nextProxy(nil): "the next proxy refused the connection, or can't be reached"
        case .cut: "the connection broke before the answer was whole"
        case .dns: "the host name could not be resolved"
        case .tls(""): "the TLS handshake failed: check the certificate, its name and the trust anchors"
        case .tls(let reason): "the TLS handshake failed: \(ForeignText.printable(reason))"
        case .timeout: "no complete answer came in time"
        case .bodyTooLarge: "the answer is larger than the limit"
        case .shortage(let fault, _): fault
        case .http2Only: "the server speaks HTTP/2 only"
        case .other: "the exchange failed"
        }
    }
}

/// Sends the requests of one client and its callers to its authorization server, each in a slot of the limiter.
struct LimitedHTTPClient: HeimdallrHTTPClient {
    /// Client without a limit, for requests that already have a slot.
    let inner: any HeimdallrHTTPClient
    private let limiter: TokenRequestLimiter
    private let client: RequestQueue.ID

    init(_ inner: any HeimdallrHTTPClient, _ limiter: TokenRequestLimiter) {
        self.inner = inner
        self.limiter = limiter
        client = limiter.makeClient()
    }

    /// Sends a request in a slot. The wait for the slot counts towards the request's timeout.
    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse {
        let deadline = limiter.clock.now() + request.timeout
        guard let slot = await slot(for: request.url, until: deadline) else { throw HeimdallrHTTPClientError.timeout }
        defer { release(slot) }
        guard slot.hasWaited else { return try await inner.send(request) }
        var late = request
        late.timeout = max(.milliseconds(1), limiter.clock.now().duration(to: deadline))
        return try await inner.send(late)
    }

    /// Waits for a slot at the authority of `url`.
    /// - Returns: `nil` if the task was cancelled or the deadline passed.
    func slot(for url: String, until deadline: ContinuousClock.Instant? = nil) async -> TokenRequestLimiter.Slot? {
        await limiter.acquire(.init(client: client, endpoint: WebURL.origin(of: url)), until: deadline)
    }

    func release(_ slot: TokenRequestLimiter.Slot) { limiter.release(slot) }
}
