import Configuration
public import CurlTransport
import Heimdallr

/// A failed exchange with an upstream, for the log. Contains no secret, unless the upstream wrote a secret into
/// `error`.
public struct UpstreamFailure: Sendable {
    public var upstream = ""
    /// OAuth client of the token that was sent.
    public var client: String?
    /// URL without its query; `HOST:PORT` for a tunnel. Printable ASCII.
    public var url: [UInt8] = []
    /// Request ID in the access log.
    public var requestID: [UInt8] = []
    public var error: TransportError
    /// Fixed sentence about the error. `advice` is the remedy, also a fixed sentence.
    public var reason: String
    public var advice: String
}

/// The news that an API keeps refusing an upstream's credential, for the log.
public struct CredentialRefusal: Sendable {
    public let upstream: String
    /// Index of the rule in the configuration's `upstreams`.
    public let rule: Int
    /// OAuth client of the token; `nil` for other credentials.
    public let client: String?
    /// Kinds and names of the injected values, never the values.
    public let injection: String
    public let status: Int
    /// URL of the last refused request without its query, in printable ASCII.
    public let url: [UInt8]
    public let requestID: [UInt8]

    init(upstream: UpstreamRule, status: Int, url: [UInt8], requestID: [UInt8]) {
        self.upstream = upstream.name
        rule = upstream.index ?? 0
        client = upstream.settings.client
        injection = upstream.settings.injectionText
        (self.status, self.url, self.requestID) = (status, url, requestID)
    }
}

extension TransportError {
    /// Remedy of a failed exchange with an upstream, without a capital letter at its start.
    public var upstreamRemedy: String {
        if let refusal = nextProxy, let remedy = refusal.remedy { return "the next proxy \(refusal.proxy) \(remedy)" }
        switch kind {
        case .shortage(let shortage): return shortage.remedy
        case .http2Only(let isSecure):
            return TLSFault.parts(of: TLSFault.http2Advice(.upstream, isSecure: isSecure)).remedy
        case .tlsHandshake, .tlsCertificate: return TLSFault(words: message).parts(.upstream).remedy
        default:
            let phrase = Problem(self).phrase
            return phrase.prefix(1).lowercased() + phrase.dropFirst()
        }
    }
}
