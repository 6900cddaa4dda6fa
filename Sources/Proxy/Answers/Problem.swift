import Configuration
import CurlTransport
import HTTPMessage
import Heimdallr
import Reports
import WireText

/// An answer of the proxy itself: the error, its cause, and the remedy.
struct Problem: Error, Equatable, Sendable {
    let condition: Condition
    var status: Int
    /// Reason phrase of the status line (RFC 9112, section 4). Many programs show only this, so it gives the remedy. At
    /// most `maxPhrase` printable ASCII characters.
    let phrase: String
    var detail: String
    var retryAfter: Duration?
    /// URL at which a browser begins the required login.
    var loginURL: String?
    /// Sentence for the access log.
    var cause: String?
    /// Whether the connection closes after this answer.
    var closes: Bool

    /// - Parameter retryAfter: `nil` for that of the row.
    init(_ condition: Condition, _ values: [Parameter: String] = [:], retryAfter: Duration? = nil) {
        self.condition = condition
        let row = Self.row(condition)
        status = row.status
        phrase = Self.phrase(row.phrases, values)
        detail = Self.fill(row.sentence, values)
        self.retryAfter = retryAfter ?? row.retryAfter
        closes = row.closes
    }

    private static func row(_ condition: Condition) -> Row { rows[condition] ?? Row(Array(repeating: "", count: 10)) }

    var row: Row { Self.row(condition) }

    /// A count of zero for each word of the table.
    static let noRefusals = Dictionary(rows.values.map { ($0.word, UInt64(0)) }) { one, _ in one }
}

// MARK: Conditions with parameters

extension Problem {
    /// - Parameter inBody: whether the error is in the body, after the head may have been sent upstream.
    init(_ error: MessageError, inBody: Bool = false) {
        let conditions = [
            414: Condition.targetTooLong, 417: .otherExpectation, 431: .headTooLarge, 505: .otherVersion,
        ]
        self.init(
            conditions[error.status] ?? .malformedRequest,
            [
                .fault: error.detail.hasSuffix(".") ? String(error.detail.dropLast()) : error.detail,
                .reach: inBody ? "The upstream got an incomplete request." : "Nothing was sent upstream.",
            ])
        status = error.status
        cause = error.detail
    }

    init(_ refusal: CallerRefusal) {
        switch refusal {
        case .malformed: self.init(.callerTokenNeeded)
        case .expired: self.init(.callerTokenRefused)
        case .tooManyNew(let retryAfter): self.init(.tooManyCallers, retryAfter: retryAfter)
        case .stopped: self.init(.draining)
        }
    }

    /// - Parameter signIn: called only when a person has to sign in.
    init(_ error: HeimdallrError, client: String, signIn: (String) -> SignInHint) {
        switch error {
        case .needsAuthentication:
            let hint = signIn(client)
            self.init(hint.wasLost ? .loginLost : .loginNeeded, [.client: client, .advice: hint.advice])
            loginURL = hint.url
        case .tokenEndpointUnavailable(.store, _), .clientRefused(.store, _):
            self.init(.storeFault, retryAfter: error.retryAfter)
        case .clientRefused(.secret, _):
            self.init(.noSecret, retryAfter: error.retryAfter)
        case .rejectedByResource: self.init(.tokensRefused, [.client: client], retryAfter: error.retryAfter)
        case .clientRefused(let fault, _) where fault.isOfAddress,
            .tokenEndpointUnavailable(let fault, _) where fault.isOfAddress:
            self.init(.wrongTokenEndpoint, [.client: client, .fault: fault.inShort], retryAfter: error.retryAfter)
        case .clientRefused: self.init(.clientRefused, retryAfter: error.retryAfter)
        case .deadlineExceeded: self.init(.lateToken, retryAfter: error.retryAfter)
        case .tokenEndpointUnavailable(let fault, _):
            self.init(.noToken, [.fault: fault.inShort], retryAfter: error.retryAfter)
        default: self.init(.noToken, [.fault: "the wait for it was ended"], retryAfter: error.retryAfter)
        }
    }

    init(_ error: TransportError) {
        switch error.kind {
        case .nameNotResolved: self.init(.nameUnknown, Self.resolver(error))
        case .nameTimedOut: self.init(.nameTimedOut, Self.resolver(error))
        case .connectionRefused: self.init(.connectionRefused)
        case .connectionFailed: self.init(.unreachable)
        case .shortage(let shortage): self.init(.machineShortage, Self.advice("\(shortage.fault): \(shortage.remedy)"))
        case .connectionTimedOut, .withheld: self.init(.connectionTimeout)
        case .connectionLimit: self.init(.connectionLimit)
        case .addressDenied: self.init(.addressDenied)
        case .loop: self.init(.loop)
        case .tlsHandshake: self.init(.tls, Self.advice(TLSFault(words: error.message).advice(.upstream)))
        case .tlsCertificate: self.init(.tlsCertificate, Self.advice(TLSFault(words: error.message).advice(.upstream)))
        case .tlsConfiguration: self.init(.tlsConfiguration)
        case .http2Only(let isSecure):
            self.init(.http2Only, Self.advice(TLSFault.http2Advice(.upstream, isSecure: isSecure)))
        case .proxy: self.init(error.nextProxyStatus == 407 ? .nextProxyLogin : .nextProxy, Self.nextProxy(error))
        case .connectionLost: self.init(.connectionLost)
        // The words are ours and OpenSSL's.
        case .responseTruncated where ["close_notify", "unexpected eof"].contains(where: error.message.contains):
            self.init(.noCloseNotify)
        case .responseTruncated: self.init(.responseCut)
        case .responseMalformed:
            let words = Self.capital(error.message)
            guard words.count > 1 else {
                self.init(.malformedResponse)
                return
            }
            let fault = words.hasSuffix(".") ? words.dropLast() : words[...]
            // A long field name may leave no room for the place.
            let short = fault.firstRange(of: " (line ").map { fault[..<$0.lowerBound] } ?? fault
            self.init(.malformedAnswer, [.fault: String(fault), .short: String(short)])
        case .aborted: self.init(.malformedResponse)
        case .http2Missing, .internal: self.init(.internalError)
        }
    }

    /// The problem of a failed dial for a tunnel. Its texts name the target of CONNECT, not an upstream.
    init(tunnel error: TransportError) {
        switch error.kind {
        case .nameNotResolved: self.init(.tunnelNameUnknown, Self.resolver(error))
        case .connectionRefused: self.init(.tunnelRefused)
        case .connectionFailed: self.init(.tunnelUnreachable)
        case .connectionTimedOut: self.init(.tunnelTimeout)
        default: self.init(error)
        }
    }

    /// - Parameter advice: our words for a fault and its remedy, with a colon between them.
    private static func advice(_ advice: String) -> [Parameter: String] {
        [
            .advice: advice.prefix(1).uppercased() + advice.dropFirst(),
            .fault: TLSFault.parts(of: advice).fault,
        ]
    }

    /// The next proxy, and its demand or the failure.
    private static func nextProxy(_ error: TransportError) -> [Parameter: String] {
        [
            .destination: error.nextProxy?.proxy ?? "", .advice: error.nextProxy?.remedy ?? "",
            .fault: capital(error.message),
        ]
    }

    private static func resolver(_ error: TransportError) -> [Parameter: String] {
        [.resolver: error.message.isEmpty ? "" : capital(error.message) + ". "]
    }

    /// Returns printable text of a message with bytes from outside, which begins with a capital letter.
    private static func capital(_ message: String) -> String {
        ForeignText.printable(message.prefix(1).uppercased() + message.dropFirst(), most: 300)
    }

    /// - Parameters:
    ///   - asked: authority that the request names.
    ///   - near: a similar upstream that the caller may use.
    static func unknownHost(_ asked: Authority, _ scheme: Scheme, near: HostPattern?) -> Problem {
        let values: [Parameter: String] = [
            .asked: "\(asked)", .destination: "\(asked.host):\(asked.port(for: scheme))",
            .near: near?.description ?? "",
        ]
        return Problem(near == nil ? .unknownHost : .unknownHostNear, values)
    }

    /// Returns this problem for CONNECT to a host without an upstream. Its texts name the host and suggest `near`, if given.
    /// - Parameter near: a similar upstream that the caller may use; `nil` without one.
    func connecting(to authority: Authority, near: HostPattern?) -> Problem {
        let values: [Parameter: String] = [.asked: "\(authority)", .near: near?.description ?? ""]
        return condition == .connectRefused
            ? Problem(near == nil ? .connectUnlisted : .connectNear, values)
            : Problem(near == nil ? .tunnelUnlisted : .tunnelNear, values)
    }

    /// - Parameters:
    ///   - miss: the rule of the host that the request misses by least.
    ///   - upstream: that rule's settings.
    init(_ miss: RuleMiss, _ upstream: UpstreamSettings, method: String, path: String) {
        var values: [Parameter: String] = [
            .rule: "upstreams[\(miss.upstream)]", .method: method, .path: ForeignText.printable(path, most: 100),
        ]
        switch miss.lack {
        case .path:
            values[.listed] = Self.list(upstream.paths)
            self.init(.pathNotCovered, values)
        case .method:
            values[.listed] = Self.list(upstream.methods)
            self.init(.methodNotCovered, values)
        case .field(let name, let had):
            (values[.field], values[.had]) = (name, had)
            self.init(.fieldNotCovered, values)
        }
    }

    private static func list(_ texts: [String]) -> String {
        texts.prefix(8).joined(separator: ", ") + (texts.count > 8 ? ", …" : "")
    }

    /// Returns this problem for CONNECT to a host whose http:// requests get a credential.
    func connecting(to authority: Authority) -> Problem {
        Problem(
            condition == .connectRefused ? .connectToUpstream : .tunnelToUpstream, [.asked: "\(authority.byHTTP)"])
    }
}

extension Authority {
    /// Authority of the http:// URL for this target of a CONNECT: without port 443.
    var byHTTP: Authority { Authority(host: host, port: port == 443 ? nil : port) }
}

extension TokenEndpointFault {
    /// Whether the address is no token endpoint.
    fileprivate var isOfAddress: Bool {
        switch self {
        case .status(let status, _): [404, 405, 410, 501].contains(status)
        case .redirect: true
        default: false
        }
    }

    /// The kind of fault for programs, with no word of the server: the log and `status` have those.
    fileprivate var inShort: String {
        switch self {
        case .network(.tls): "its TLS handshake failed"
        case .network(let error): error.description
        case .status(let status, _), .webPage(let status), .limited(let status, _), .redirect(let status):
            "it answered \(status)"
        case .answer: "its answer can't be used"
        case .refused: "it refused the request"
        case .discovery: "its address was not found in the server's metadata"
        case .secret, .store: "the request was not sent"
        case .stuck: "no complete answer came in time"
        }
    }
}
