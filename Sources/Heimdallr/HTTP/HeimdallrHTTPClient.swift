/// Sends one HTTP exchange. The seam to the network: token requests go through it, nothing else does.
///
/// What an implementation owes its caller:
/// - it honours `HeimdallrHTTPRequest.timeout`, from connect to the last byte, and `HeimdallrHTTPRequest.maxBodyBytes`;
/// - it never follows a redirect and never adds credentials of its own;
/// - it stops, throwing, when the calling task is cancelled.
public protocol HeimdallrHTTPClient: Sendable {
    /// - Throws: `HeimdallrHTTPClientError`. Anything else that is thrown counts as `HeimdallrHTTPClientError.other`.
    func send(_ request: HeimdallrHTTPRequest) async throws -> HeimdallrHTTPResponse
}

/// One header field, as it stands in the message.
public struct HeimdallrHTTPField: Sendable, Hashable {
    public var name: String
    public var value: String

    public init(name: String, value: String) {
        self.name = name
        self.value = value
    }
}

/// A request held in memory. Prints without header values and body: they hold credentials.
public struct HeimdallrHTTPRequest: Sendable, Equatable, Redacted {
    public var method: String
    /// Absolute, `https://…` or `http://…`.
    public var url: String
    public var headers: [HeimdallrHTTPField]
    public var body: [UInt8]
    /// From connect to the last byte of the answer.
    public var timeout: Duration
    /// A longer answer is `HeimdallrHTTPClientError.bodyTooLarge`, and no more of it is read.
    public var maxBodyBytes: Int

    public init(
        method: String = "GET", url: String, headers: [HeimdallrHTTPField] = [], body: [UInt8] = [],
        timeout: Duration = .seconds(10), maxBodyBytes: Int = 1 << 20
    ) {
        self.method = method
        self.url = url
        self.headers = headers
        self.body = body
        self.timeout = timeout
        self.maxBodyBytes = maxBodyBytes
    }

    public var description: String {
        "\(method) \(url.prefix { $0 != "?" }), \(headers.count) headers, \(body.count) bytes"
    }
}

/// A whole answer. Prints without header values and body: they hold tokens.
public struct HeimdallrHTTPResponse: Sendable, Equatable, Redacted {
    public var status: Int
    public var headers: [HeimdallrHTTPField]
    public var body: [UInt8]

    public init(status: Int, headers: [HeimdallrHTTPField] = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The value of the first field of that name; names compare without case.
    public func header(_ name: String) -> String? {
        headers.first { ASCII.equalIgnoringCase($0.name, name) }?.value
    }

    public var description: String { "HTTP \(status), \(headers.count) headers, \(body.count) bytes" }
}

/// Why there is no answer. Fixed sentences, printable; of a peer's words only what a certificate says can be in them.
public enum HeimdallrHTTPClientError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The connection was refused, reset or cut.
    case connect
    case dns
    /// And why, in the words of the TLS library; empty when it says nothing. May hold what the peer's certificate says.
    case tls(String)
    case timeout
    case bodyTooLarge
    /// What the peer sent is not HTTP, or something else that has no name here.
    case other

    public var description: String {
        switch self {
        case .connect: "the connection could not be made, or broke"
        case .dns: "the host name could not be resolved"
        case .tls(""): "the TLS handshake failed: check the certificate, its name and the trust anchors"
        case .tls(let reason): "the TLS handshake failed: \(ServerText.sanitize(reason, hiding: []))"
        case .timeout: "no complete answer came in time"
        case .bodyTooLarge: "the answer is larger than what is accepted"
        case .other: "the exchange failed"
        }
    }
}
