import CurlTransport
import HTTPMessage
import Heimdallr
import Reports

/// An answer of the proxy's own: what went wrong, whose fault it is, and what to do. All are listed in
/// docs/architecture.md, "The proxy's own answers", and explained in docs/errors.md.
/// `error` is a Proxy Error Type of RFC 9209, section 2.3.
struct Problem: Error, Equatable, Sendable {
    let status: Int
    let error: String
    let word: ProblemWord
    let title: String
    let detail: String
    var retryAfter: Duration?
    /// Where a browser begins the login that is wanted.
    var loginURL: String?
    /// What WWW-Authenticate says (RFC 6750, section 3).
    var challenge: String?
    /// What is wrong with a request that can't be understood.
    var cause: String?
    /// The connection can't be used for another request.
    var closes = false

    init(
        _ status: Int, _ error: String, _ word: ProblemWord, _ title: String, _ detail: String,
        retryAfter: Duration? = nil,
        closes: Bool = false
    ) {
        self.status = status
        self.error = error
        self.word = word
        self.title = title
        self.detail = detail
        self.retryAfter = retryAfter
        self.closes = closes
    }
}

// MARK: The client's fault

extension Problem {
    init(_ error: MessageError) {
        self.init(
            error.status, "http_request_error", .malformedRequest, "The request can't be understood",
            "\(error.detail) The connection is closed; nothing was sent upstream.", closes: true)
        cause = error.detail
    }

    /// Of a body that began well: its request is under way.
    init(inBody error: MessageError) {
        self.init(
            error.status, "http_request_error", .malformedRequest, "The request can't be understood",
            "\(error.detail) The connection is closed; what was sent upstream stays incomplete.", closes: true)
        cause = error.detail
    }

    static let slowHead = Problem(
        408, "http_request_error", .slowRequest, "The request took too long",
        "The head of the request did not arrive within proxy.header_timeout.", closes: true)
    static let slowBody = Problem(
        408, "http_request_error", .slowRequest, "The request took too long",
        "The body of the request stalled for longer than proxy.idle_timeout.", closes: true)
    static let bodyCut = Problem(
        400, "http_request_error", .bodyCut, "The request's body is not whole",
        "The connection's sending side ended before the body did. What was sent upstream stays incomplete.",
        closes: true)
    static let bodyTooLarge = Problem(
        413, "http_request_error", .bodyTooLarge, "The request's body is too large",
        "The body is longer than proxy.max_body_bytes.", closes: true)
    static let connectRefused = Problem(
        403, "http_request_denied", .connectRefused, "CONNECT is not allowed",
        "A token can't be put on a request inside a CONNECT tunnel. Use an http:// URL for hosts that the "
            + "configuration names: the proxy goes on by https. For tunnels without a token, set "
            + "`proxy.connect: tunnel` and list HOST:PORT under `proxy.tunnels`.", closes: true)
    static let tunnelNotListed = Problem(
        403, "http_request_denied", .tunnelNotListed, "No tunnel to this host and port",
        "Add HOST:PORT to `proxy.tunnels`. For hosts that the configuration names, use an http:// URL: inside a tunnel "
            + "no token can be put on a request.", closes: true)
    static let schemeNotSupported = Problem(
        400, "http_request_error", .schemeNotSupported, "The target's scheme is not supported",
        "Ask for http://HOST/PATH: the proxy goes on by https where the upstream's url says so.", closes: true)
    static let traceWithBody = Problem(
        400, "http_request_error", .malformedRequest, "The request can't be understood",
        "A TRACE request has no body (RFC 9110, section 9.3.8).", closes: true)
    static let badMaxForwards = Problem(
        400, "http_request_error", .malformedRequest, "The request can't be understood",
        "Max-Forwards is not a number (RFC 9110, section 7.6.2).", closes: true)
    static let hostMissing = Problem(
        400, "http_request_error", .hostMissing, "The request names no host",
        "Send an absolute target (http://HOST/PATH) or a Host field.", closes: true)
    static let unknownHost = Problem(
        403, "http_request_denied", .noUpstream, "No upstream for this host",
        "The configuration names no upstream for this host and port. Add it under `upstreams`, or set "
            + "`proxy.unmatched: forward`.")
    static let notCovered = Problem(
        403, "http_request_denied", .notCovered, "No rule for this path or method",
        "The configuration names this host, but not with this path and method. Add them to its `paths` and `methods`.")
    static let notForCaller = Problem(
        403, "http_request_denied", .notForCaller, "No rule for this caller",
        "The configuration names this host, but not for who asks. Add the user, the uid or the listener to the "
            + "upstream's `callers`.")
    static let userRequired = Problem(
        407, "http_request_denied", .userRequired, "The proxy wants to know who asks",
        "Send Proxy-Authorization: Basic with a name and password of `proxy.users`, in most programs by "
            + "http://NAME:PASSWORD@HOST:PORT as the proxy's address.")
    static let ambiguousPath = Problem(
        400, "http_request_error", .ambiguousPath, "The path can be read in more than one way",
        "Upstreams of this host are chosen by path, and this one holds `..`, `//`, `;`, a backslash or an escape of "
            + "one of them. Send the path in its plain form.")
    static let climbingPath = Problem(
        400, "http_request_error", .ambiguousPath, "The path can be read in more than one way",
        "The upstream's url has a path, and this one could lead out of it: it holds `..`, a backslash or an escape of "
            + "one of them. Send the path in its plain form.")
    static let wholeServer = Problem(
        400, "http_request_error", .wholeServer, "The request is for the whole server",
        "The upstream is limited to some paths, by `paths` or by a path in its url, and `OPTIONS *` is for all of its "
            + "server. Ask for OPTIONS and a path.")
    static let foreignHost = Problem(
        403, "http_request_denied", .foreignHost, "This listener does not answer to that host",
        "Ask for localhost, or list the name under the upstream's `hosts`.", closes: true)
    static let webPage = Problem(
        403, "http_request_denied", .webPage, "Web pages may not use this listener",
        "The request carries Origin, Sec-Fetch-Site or the User-Agent of a browser, so a web page may have sent it. Set "
            + "`browsers: true` on the upstream to allow that.", closes: true)
    static let ownCredential = Problem(
        403, "http_request_denied", .ownCredential, "The request brings its own credential",
        "The upstream is set to `on_existing: reject`, and the request already carries the field or parameter that "
            + "the proxy would set.")
    static let methodOverride = Problem(
        403, "http_request_denied", .methodOverride, "The request asks for another method than its own",
        "The upstream's rule has `methods`, and a server may take the method from a field such as "
            + "X-HTTP-Method-Override or from the parameter `_method` instead. Send the method itself.")
    static let pathOverride = Problem(
        403, "http_request_denied", .pathOverride, "The request asks for another path than its own",
        "The upstream is limited to some paths, and a server may take the path from a field such as X-Original-URL "
            + "instead. Ask for the path itself.")
    static let destinationNotCovered = Problem(
        403, "http_request_denied", .destinationNotCovered, "No rule for what Destination names",
        "The upstream is limited to some paths, and the path in the Destination field is not below them, or can be read "
            + "in more than one way. Send a plain http:// or https:// URL, or a path from the root.")
    static let queryNeeded = Problem(
        400, "http_request_error", .noQuery, "A request for * has no query to carry the token",
        "The upstream takes its token in the query (`inject: {query: …}`), and `OPTIONS *` has none. Ask for "
            + "OPTIONS and a path.")
    static let bodyNotSignable = Problem(
        413, "http_request_error", .bodyNotSignable, "The request's body is too long to be signed",
        "The service wants a digest of the body in front of it, and the body is longer than the upstream's "
            + "max_replay_bytes. Raise that, or send the body's SHA-256 in X-Amz-Content-Sha256.", closes: true)
    static let signedChunks = Problem(
        400, "http_request_error", .signedChunks, "The body is signed with other keys",
        "Its chunks carry signatures of their own (STREAMING-AWS4-HMAC-SHA256-PAYLOAD), which the proxy can't make anew. "
            + "Turn chunked signing off in the program.", closes: true)
    static let bytesBeforeUpgrade = Problem(
        400, "http_request_error", .bytesBeforeUpgrade, "Bytes came before the upgrade was agreed",
        "Send nothing behind a request with `Connection: Upgrade` before its answer: it may not be what you take it for.",
        closes: true)
}

// MARK: A caller's own token

extension Problem {
    static let callerTokenNeeded = Problem(
        status: 401, .callerTokenNeeded, "The request brings no token of its own",
        "This upstream's client exchanges the token of whoever calls (`subject_token: caller`): send one "
            + "`Authorization: Bearer TOKEN`, of at most 16 KiB.", challenge: "Bearer")
    static let callerTokenRefused = Problem(
        status: 401, .callerTokenRefused, "The token that the request brings is not taken",
        "It has expired, or the authorization server does not exchange it for one that the API takes. Send another one; "
            + "`heimdallr-proxy status` says how the server is asked.", challenge: "Bearer error=\"invalid_token\"")

    private init(status: Int, _ word: ProblemWord, _ title: String, _ detail: String, challenge: String) {
        self.init(status, "http_request_denied", word, title, detail)
        self.challenge = challenge
    }

    init(_ refusal: CallerRefusal) {
        switch refusal {
        case .malformed: self = .callerTokenNeeded
        case .expired: self = .callerTokenRefused
        case .tooManyNew(let retryAfter):
            self.init(
                503, "proxy_internal_response", .tooManyCallers, "Too many new callers at once",
                "Many tokens that the proxy has not seen before came in a short time, and were not exchanged. Callers who "
                    + "are known already are served.", retryAfter: retryAfter)
        case .stopped: self = .draining
        }
    }
}

// MARK: Ours

extension Problem {
    static let loop = Problem(
        508, "proxy_loop_detected", .loop, "The request would come back to this proxy",
        "The upstream's address is one of this proxy's own listeners.")
    static let circle = Problem(
        508, "proxy_loop_detected", .circle, "The request goes in a circle",
        "It has passed heimdallr-proxy many times: something leads what the proxy sends back to it. Where ports are "
            + "redirected, exempt the user that the proxy runs as.")
    static let noCredential = Problem(
        503, "proxy_internal_response", .noCredential, "A credential of this upstream is not to be had",
        "A secret under the upstream's `inject` can't be read, or does not fit into a field. The log says which and why; "
            + "the proxy tries again by itself.", retryAfter: .seconds(1))
    static let draining = Problem(
        503, "proxy_internal_response", .stopping, "The proxy is stopping", "Send the request again.",
        retryAfter: .seconds(1), closes: true)
    static let internalError = Problem(
        500, "proxy_internal_error", .internal, "The proxy failed", "This is a fault of the proxy; its log says more.",
        closes: true)
}

// MARK: The token endpoint's

extension Problem {
    /// - Parameter signIn: only asked when a person is wanted.
    init(_ error: HeimdallrError, client: String, signIn: (String) -> SignInHint) {
        switch error {
        case .needsAuthentication:
            let hint = signIn(client)
            self.init(
                503, "proxy_internal_response", .loginNeeded, "Somebody has to sign in",
                "Nobody is signed in for the OAuth client \(client): \(hint.advice).")
            loginURL = hint.url
        case .rejectedByResource:
            self.init(
                502, "proxy_configuration_error", .tokensRefused, "The API refuses the client's tokens",
                "The authorization server issues tokens to the OAuth client \(client), and the API has refused the last "
                    + "ones: compare the client's audience, resource and scope with what the API wants.",
                retryAfter: error.retryAfter)
        case .clientRefused:
            self.init(
                502, "proxy_configuration_error", .clientRefused, "The authorization server refuses the client",
                "Check the client's id, secret, grant type and scope; `heimdallr-proxy status` and the log say what "
                    + "the server answered.", retryAfter: error.retryAfter)
        default:
            self.init(
                503, "proxy_internal_response", .noToken, "No token to be had",
                "The token endpoint gave no usable token, and there is no valid one left. The proxy tries again by "
                    + "itself.", retryAfter: error.retryAfter ?? .seconds(1))
        }
    }
}

// MARK: The upstream's

extension Problem {
    init(_ error: TransportError) {
        switch error.kind {
        case .nameNotResolved:
            self.init(
                502, "dns_error", .dns, "The upstream's name can't be resolved", "Check the upstream's host or url.")
        case .connectionRefused:
            self.init(
                502, "connection_refused", .connectionRefused, "The upstream refuses connections",
                "Check that it is running and that the port is right.")
        case .connectionFailed:
            self.init(
                502, "destination_ip_unroutable", .unreachable, "The upstream can't be reached",
                "Check the network between here and the upstream.")
        case .connectionTimedOut, .withheld:
            self.init(
                504, "connection_timeout", .connectionTimeout, "The upstream did not accept the connection in time",
                "The connection was not there within the upstream's connect_timeout.")
        case .connectionLimit:
            self.init(
                503, "connection_limit_reached", .connectionLimit, "Too many requests for this upstream",
                "As many connections as the upstream's max_connections are busy.", retryAfter: .seconds(1))
        case .addressDenied:
            self.init(
                403, "destination_ip_prohibited", .addressDenied, "The address is not allowed",
                "Hosts that the configuration does not name may not be at a loopback, private or otherwise special "
                    + "address; `proxy.private_networks` lists exceptions.")
        case .loop: self = .loop
        case .tlsHandshake:
            self.init(
                502, "tls_protocol_error", .tls, "TLS with the upstream failed",
                Self.sentence(error, "Check that its port speaks TLS 1.2 or later."))
        case .tlsCertificate:
            self.init(
                502, "tls_certificate_error", .tlsCertificate, "The upstream's certificate is not trusted",
                Self.sentence(error, "Check its name and issuer; `tls.ca_file` adds a private authority."))
        case .tlsConfiguration:
            self.init(
                502, "proxy_configuration_error", .tlsConfiguration, "A TLS file of the upstream can't be used",
                "Check ca_file, cert_file and key_file under the upstream's `tls`.")
        case .proxy:
            self.init(
                502, "destination_unavailable", .nextProxy, "The next proxy refused",
                "Check the upstream's `proxy`.")
        case .connectionLost:
            self.init(
                502, "connection_terminated", .connectionLost, "The upstream closed the connection",
                "It ended before an answer came. The request may have been carried out.")
        case .responseTruncated:
            self.init(
                502, "http_response_incomplete", .responseCut, "The upstream's answer was cut short",
                "The connection ended within the head of the answer.")
        case .responseMalformed, .aborted:
            self = .malformedResponse
        case .http2Missing, .internal: self = .internalError
        }
    }

    /// A fixed one, by what TLS says.
    private static func sentence(_ error: TransportError, _ other: String) -> String {
        let fault = TLSFault(words: error.message)
        guard fault != .other else { return other }
        let advice = fault.advice(.upstream)
        return advice.prefix(1).uppercased() + advice.dropFirst() + "."
    }

    /// Of a tunnel, where no upstream of the configuration is involved.
    init(tunnel error: TransportError) {
        switch error.kind {
        case .nameNotResolved:
            self.init(
                502, "dns_error", .dns, "The host's name can't be resolved", "Check the host that CONNECT names.",
                closes: true)
        case .connectionRefused:
            self.init(
                502, "connection_refused", .connectionRefused, "The other end refuses connections",
                "Check that something listens at the host and port that CONNECT names.", closes: true)
        case .connectionFailed:
            self.init(
                502, "destination_ip_unroutable", .unreachable, "The other end can't be reached",
                "Check the network between here and the host that CONNECT names.", closes: true)
        case .connectionTimedOut: self = .tunnelTimeout
        default:
            self.init(error)
        }
    }

    static let malformedResponse = Problem(
        502, "http_protocol_error", .malformedResponse, "The upstream's answer can't be understood",
        "It is not a valid HTTP answer, or one that two readers could understand differently.")
    static let unaskedUpgrade = Problem(
        502, "http_upgrade_failed", .unaskedUpgrade, "The upstream switched protocols unasked",
        "It answered 101 to a request that did not ask for an upgrade.")
    static let responseTimeout = Problem(
        504, "http_response_timeout", .responseTimeout, "The upstream did not answer in time",
        "No answer within the upstream's response_timeout.")
    static let tunnelTimeout = Problem(
        504, "connection_timeout", .connectionTimeout, "The other end did not accept the connection in time",
        "The connection was not there within five seconds.", closes: true)
    static let expectationFailed = Problem(
        417, "http_request_error", .expectationFailed, "The upstream refuses the expectation",
        "Send the request again without `Expect`.", closes: true)
}
