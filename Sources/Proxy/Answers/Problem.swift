import CurlTransport
import HTTPMessage
import Heimdallr
import Reports

/// An answer of the proxy itself: the error, its cause, and the remedy. docs/errors.md lists all problems.
struct Problem: Error, Equatable, Sendable {
    var status: Int
    /// Proxy Error Type (RFC 9209, section 2.3).
    let error: String
    let word: ProblemWord
    let title: String
    /// Reason phrase of the status line (RFC 9112, section 4). Many programs show only this, so it gives the remedy. At
    /// most `maxPhrase` printable ASCII characters.
    var phrase: String
    var detail: String
    var retryAfter: Duration?
    /// URL at which a browser begins the required login.
    var loginURL: String?
    /// Value of WWW-Authenticate (RFC 6750, section 3).
    var challenge: String?
    /// Sentence for the access log.
    var cause: String?
    /// Whether the connection closes after this answer.
    var closes = false
    /// Whether `token_wait` ended the request.
    var isLate = false

    init(
        _ status: Int, _ error: String, _ word: ProblemWord, _ title: String, phrase: String,
        _ detail: String,
        retryAfter: Duration? = nil,
        closes: Bool = false
    ) {
        self.status = status
        self.error = error
        self.word = word
        self.title = title
        self.phrase = phrase
        self.detail = detail
        self.retryAfter = retryAfter
        self.closes = closes
    }
}

// MARK: The client's fault

extension Problem {
    /// - Parameter inBody: whether the error is in the body, after the head may have been sent upstream.
    init(_ error: MessageError, inBody: Bool = false) {
        let sent = inBody ? "The upstream got an incomplete request." : "Nothing was sent upstream."
        self.init(
            error.status, "http_request_error", .malformedRequest, "The request can't be understood",
            phrase: Self.phrase(of: error), "\(error.detail) \(sent)", closes: true)
        cause = error.detail
    }

    static let slowHead = Problem(
        408, "http_request_error", .slowRequest, "The request took too long",
        phrase: "Send the whole head within proxy.header_timeout, or raise that",
        "The head of the request did not arrive within proxy.header_timeout.", closes: true)
    static let slowBody = Problem(
        408, "http_request_error", .slowRequest, "The request took too long",
        phrase: "Send the body without long pauses, or raise proxy.idle_timeout",
        "The body of the request stalled for longer than proxy.idle_timeout.", closes: true)
    static let slowCall = Problem(
        408, "http_request_error", .slowRequest, "The request took too long",
        phrase: "Send messages without long pauses, or raise the upstream's idle_timeout",
        "The messages of the call stalled for longer than the upstream's idle_timeout.", closes: true)
    static let bodyCut = Problem(
        400, "http_request_error", .bodyCut, "The request's body is not whole",
        phrase: "Send the whole body before ending the connection's sending side",
        "The connection's sending side ended before the body did. The upstream got an incomplete request.",
        closes: true)
    static let bodyTooLarge = Problem(
        413, "http_request_error", .bodyTooLarge, "The request's body is too large",
        phrase: "Send a shorter body, or raise proxy.max_body_bytes",
        "The body is longer than proxy.max_body_bytes.", closes: true)
    static let upgradeBodyTooLarge = Problem(
        413, "http_request_error", .bodyTooLarge, "The request's body is too large",
        phrase: "Send a shorter body with Upgrade, or raise max_replay_bytes",
        "A request that offers an upgrade is passed on once its body is whole, and the body is longer than the upstream's "
            + "max_replay_bytes.", closes: true)
    static let connectRefused = Problem(
        403, "http_request_denied", .connectRefused, "CONNECT is not allowed",
        phrase: "Use http:// URLs of upstreams, or set proxy.connect: tunnel",
        "No token can be put on a request that TLS hides inside CONNECT. Use an http:// URL for hosts that the "
            + "configuration names: the proxy connects to them over https. Or set `intercept: true` at the upstream, and "
            + "start the program by `heimdallr-proxy exec`. For tunnels without a token, set "
            + "`proxy.connect: tunnel` and list HOST:PORT under `proxy.tunnels`.", closes: true)
    static let tunnelNotListed = Problem(
        403, "http_request_denied", .tunnelNotListed, "No tunnel to this host and port",
        phrase: "Add this host and port to proxy.tunnels",
        "Add HOST:PORT to `proxy.tunnels`. For hosts that the configuration names, use an http:// URL: no token can be "
            + "put on a request that TLS hides inside CONNECT.", closes: true)
    static let otherAuthority = Problem(
        403, "http_request_denied", .otherAuthority, "The request names another host than its CONNECT",
        phrase: "Send the host and port of the CONNECT in Host",
        "Inside CONNECT, requests go to the host and port that the CONNECT names. If the CONNECT names an address, "
            + "requests may go to any host of `upstreams` with that port.", closes: true)
    static let otherThanDialled = Problem(
        403, "http_request_denied", .otherAuthority, "The request names another host than the one that was dialled",
        phrase: "Send the host that the connection was opened for in Host",
        "An enclosed program has looked up a name, connected to its address, and named another host in Host, or in the "
            + "server name of TLS.", closes: true)
    static let nothingInside = Problem(
        408, "http_request_error", .slowRequest, "The request took too long",
        phrase: "Send the first bytes within proxy.header_timeout, or raise that",
        "Nothing came inside CONNECT within proxy.header_timeout.", closes: true)
    static let noHello = Problem(
        403, "http_request_denied", .connectRefused, "TLS without a host",
        phrase: "Send a ClientHello with the host's name",
        "The ClientHello of a redirected connection is malformed, or names no host.", closes: true)
    static let slowHello = Problem(
        408, "http_request_error", .slowRequest, "The request took too long",
        phrase: "Send the ClientHello within proxy.header_timeout, or raise that",
        "The ClientHello of a redirected connection did not arrive within proxy.header_timeout.", closes: true)
    static let schemeNotSupported = Problem(
        400, "http_request_error", .schemeNotSupported, "The target's scheme is not supported",
        phrase: "Use an http:// URL: the proxy connects to the API over https",
        "Ask for http://HOST/PATH: the proxy connects over https where the upstream's url says so.", closes: true)
    static let traceWithBody = Problem(
        400, "http_request_error", .malformedRequest, "The request can't be understood",
        phrase: "Send TRACE without a body",
        "A TRACE request has no body (RFC 9110, section 9.3.8).", closes: true)
    static let badMaxForwards = Problem(
        400, "http_request_error", .malformedRequest, "The request can't be understood",
        phrase: "Send a number in Max-Forwards",
        "Max-Forwards is not a number (RFC 9110, section 7.6.2).", closes: true)
    static let hostMissing = Problem(
        400, "http_request_error", .hostMissing, "The request names no host",
        phrase: "Send an absolute target (http://HOST/PATH) or a Host field",
        "Send an absolute target (http://HOST/PATH) or a Host field.", closes: true)
    static let notCovered = Problem(
        403, "http_request_denied", .notCovered, "No rule for this path or method",
        phrase: "Add this path and method to the upstream's paths and methods",
        "The configuration names this host, but no rule for it covers this path, method and fields. Correct `paths`, "
            + "`methods` or `fields` of the upstream.")
    static let notForCaller = Problem(
        403, "http_request_denied", .notForCaller, "No rule for this caller",
        phrase: "Add this caller to the upstream's callers",
        "The configuration names this host, but no rule for it allows this caller. Add the user, the uid or the listener "
            + "to the upstream's `callers`.")
    static let userRequired = Problem(
        407, "http_request_denied", .userRequired, "The proxy requires a name and password",
        phrase: "Set the proxy as http://NAME:PASSWORD@HOST:PORT, with one of proxy.users",
        "Send Proxy-Authorization: Basic with a name and password of `proxy.users`. In most programs, set the proxy's "
            + "address to http://NAME:PASSWORD@HOST:PORT.")
    static let ambiguousPath = Problem(
        400, "http_request_error", .ambiguousPath, "The path can be read in more than one way",
        phrase: "Send the path in its plain form, without .. // ; or a backslash",
        "Upstreams of this host are chosen by path, and this path contains `..`, `//`, `;`, a backslash or an escape of "
            + "one of them. Send the path in its plain form.")
    static let climbingPath = Problem(
        400, "http_request_error", .ambiguousPath, "The path can be read in more than one way",
        phrase: "Send the path in its plain form, without .. or a backslash",
        "The upstream's url has a path, and the request's path could lead out of it: it contains `..`, a backslash or "
            + "an escape of one of them. Send the path in its plain form.")
    static let wholeServer = Problem(
        400, "http_request_error", .wholeServer, "The request is for the whole server",
        phrase: "Ask for OPTIONS and a path instead of OPTIONS *",
        "The upstream is limited by `paths`, `fields` or a path in its url, and `OPTIONS *` is for its whole server. "
            + "Ask for OPTIONS and a path.")
    static let foreignHost = Problem(
        403, "http_request_denied", .foreignHost, "This listener does not answer to that host",
        phrase: "Ask for localhost, or list the name in the upstream's hosts",
        "Ask for localhost, or list the name under the upstream's `hosts`.", closes: true)
    static let webPage = Problem(
        403, "http_request_denied", .webPage, "Web pages may not use this listener",
        phrase: "Set browsers: true on the upstream to let web pages use it",
        "The request carries Origin, Sec-Fetch-Site or the User-Agent of a browser, so a web page may have sent it. Set "
            + "`browsers: true` on the upstream to allow that.", closes: true)
    static let ownCredential = Problem(
        403, "http_request_denied", .ownCredential, "The request brings its own credential",
        phrase: "Send no credential of your own: on_existing is set to reject",
        "The upstream is set to `on_existing: reject`, and the request already carries the field or parameter that "
            + "the proxy would set.")
    static let methodOverride = Problem(
        403, "http_request_denied", .methodOverride, "The request asks for another method than its own",
        phrase: "Send the method itself instead of an override",
        "The upstream's rule has `methods`, and a server may take the method from a field such as "
            + "X-HTTP-Method-Override or from the parameter `_method` instead. Send the method itself.")
    static let pathOverride = Problem(
        403, "http_request_denied", .pathOverride, "The request asks for another path than its own",
        phrase: "Ask for the path itself instead of an override",
        "The upstream is limited to some paths, and a server may take the path from a field such as X-Original-URL "
            + "instead. Ask for the path itself.")
    static let destinationNotCovered = Problem(
        403, "http_request_denied", .destinationNotCovered, "No rule for the path in Destination",
        phrase: "Send a plain Destination below the upstream's paths",
        "The upstream is limited to some paths, and the path in the Destination field is not below them, or can be read "
            + "in more than one way. Send a plain http:// or https:// URL, or a path from the root.")
    static let queryNeeded = Problem(
        400, "http_request_error", .noQuery, "A request for * has no query to carry the token",
        phrase: "Ask for OPTIONS and a path instead of OPTIONS *",
        "The upstream takes its token in the query (`inject: {query: …}`), and `OPTIONS *` has none. Ask for "
            + "OPTIONS and a path.")
    static let signsInItself = Problem(
        404, "http_request_denied", .signsInItself, "The proxy signs in to this API itself",
        phrase: "Send requests without a sign-in: the proxy adds the token",
        "The upstream has `client: auto`, so programs need no sign-in. If a program must sign in itself, leave `client` "
            + "out, or set `discovery: pass` under the upstream's `auto`.")
    static let bodyNotSignable = Problem(
        413, "http_request_error", .bodyNotSignable, "The request's body is too long to be signed",
        phrase: "Raise the upstream's max_replay_bytes, or send X-Amz-Content-Sha256",
        "The service requires a digest before the body, and the body is longer than the upstream's "
            + "max_replay_bytes. Raise this limit, or send the body's SHA-256 in X-Amz-Content-Sha256.", closes: true)
    static let signedChunks = Problem(
        400, "http_request_error", .signedChunks, "The body is signed with other keys",
        phrase: "Turn chunked signing off in the program",
        "Each chunk carries its own signature (STREAMING-AWS4-HMAC-SHA256-PAYLOAD), which the proxy can't replace. Turn "
            + "chunked signing off in the program.", closes: true)
    static let bytesBeforeUpgrade = Problem(
        400, "http_request_error", .bytesBeforeUpgrade, "Bytes came before the upgrade was agreed",
        phrase: "Send more only after the answer to the upgrade request",
        "After a request with `Connection: Upgrade`, wait for the answer before you send more: the upstream may refuse it.",
        closes: true)
}

// MARK: A caller's own token

extension Problem {
    static let callerTokenNeeded = Problem(
        status: 401, .callerTokenNeeded, "The request has no caller's token",
        phrase: "Send Authorization: Bearer TOKEN, of at most 16 KiB",
        "This upstream's client exchanges the caller's own token (`subject_token: caller`). Send one "
            + "`Authorization: Bearer TOKEN` of at most 16 KiB.", challenge: "Bearer")
    static let callerTokenRefused = Problem(
        status: 401, .callerTokenRefused, "The caller's token is refused",
        phrase: "Send a fresh Bearer token: this one can't be exchanged",
        "The token has expired, or the authorization server does not exchange it for one that the API accepts. Send a fresh "
            + "one; `heimdallr-proxy status` shows how the proxy asks the server.",
        challenge: "Bearer error=\"invalid_token\"")

    private init(
        status: Int, _ word: ProblemWord, _ title: String, phrase: String, _ detail: String, challenge: String
    ) {
        self.init(status, "http_request_denied", word, title, phrase: phrase, detail)
        self.challenge = challenge
    }

    init(_ refusal: CallerRefusal) {
        switch refusal {
        case .malformed: self = .callerTokenNeeded
        case .expired: self = .callerTokenRefused
        case .tooManyNew(let retryAfter):
            self.init(
                503, "proxy_internal_response", .tooManyCallers, "Too many new callers at once",
                phrase: "Try again later: too many new callers' tokens came at once",
                "Many tokens that the proxy had not seen before came in a short time and could not be exchanged. Known "
                    + "callers are still served.", retryAfter: retryAfter)
        case .stopped: self = .draining
        }
    }
}

// MARK: The proxy itself

extension Problem {
    static let loop = Problem(
        508, "proxy_loop_detected", .loop, "The request would come back to this proxy",
        phrase: "Set the upstream's url to the API: this address is the proxy's own",
        "The upstream's address is one of this proxy's own listeners.")
    static let circle = Problem(
        508, "proxy_loop_detected", .circle, "The request goes in a circle",
        phrase: "Exempt the proxy's own user from port redirection: its requests come back",
        "The request has passed heimdallr-proxy many times: something sends the proxy's own requests back to it. Where "
            + "ports are redirected, exempt the user that runs the proxy.")
    static let noCredential = Problem(
        503, "proxy_internal_response", .noCredential, "A credential for this upstream is unavailable",
        phrase: "Check the secrets under the upstream's inject: the log says which fails",
        "A secret under the upstream's `inject` can't be read, or does not fit into a field. The log says which and why; "
            + "the proxy tries again by itself.", retryAfter: .seconds(1))
    static let draining = Problem(
        503, "proxy_internal_response", .stopping, "The proxy is stopping",
        phrase: "Send the request again: this proxy is stopping", "Send the request again.",
        retryAfter: .seconds(1), closes: true)
    static let internalError = Problem(
        500, "proxy_internal_error", .internal, "The proxy failed",
        phrase: "Report this: the proxy failed, and its log says more",
        "This is a fault of the proxy; its log says more.",
        closes: true)
}
