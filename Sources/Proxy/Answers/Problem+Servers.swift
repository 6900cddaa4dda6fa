import CurlTransport
import Heimdallr
import Reports
import WireText

// Problems caused by token endpoints and upstreams.

// MARK: Token endpoints

extension Problem {
    /// - Parameter signIn: called only when a person has to sign in.
    init(_ error: HeimdallrError, client: String, signIn: (String) -> SignInHint) {
        switch error {
        case .needsAuthentication:
            let hint = signIn(client)
            self.init(
                503, "proxy_internal_response", .loginNeeded, "A sign-in is needed",
                phrase: Self.phrase([
                    "Sign in: heimdallr-proxy login \(client)", "Sign in by heimdallr-proxy login or at the admin page",
                ]),
                "Nobody is signed in for the OAuth client \(client): \(hint.advice).")
            loginURL = hint.url
        case .rejectedByResource:
            self.init(
                502, "proxy_configuration_error", .tokensRefused, "The API refuses the client's tokens",
                phrase: "Check the client's audience, resource and scope: the API refuses its tokens",
                "The authorization server issues tokens to the OAuth client \(client), but the API refused the last ones. "
                    + "Compare the client's audience, resource and scope with those that the API requires.",
                retryAfter: error.retryAfter)
        case .clientRefused:
            self.init(
                502, "proxy_configuration_error", .clientRefused, "The authorization server refuses the client",
                phrase: "Check the client's id, secret, grant type and scope",
                "Check the client's id, secret, grant type and scope; `heimdallr-proxy status` and the log say what "
                    + "the server answered.", retryAfter: error.retryAfter)
        case .deadlineExceeded:
            self.init(
                503, "proxy_internal_response", .noToken, "No valid token",
                phrase: "Try again later: no token came within the upstream's token_wait",
                "No token came within the upstream's token_wait. The proxy goes on asking the token endpoint.",
                retryAfter: error.retryAfter ?? .seconds(1))
            isLate = true
        default:
            self.init(
                503, "proxy_internal_response", .noToken, "No valid token",
                phrase: "Try again later: the token endpoint gave no usable token",
                "The token endpoint gave no usable token, and there is no valid one left. The proxy tries again by "
                    + "itself.", retryAfter: error.retryAfter ?? .seconds(1))
        }
    }
}

// MARK: Upstreams

extension Problem {
    init(_ error: TransportError) {
        switch error.kind {
        case .nameNotResolved, .nameTimedOut: self = .name(error)
        case .connectionRefused:
            self.init(
                502, "connection_refused", .connectionRefused, "The upstream refuses connections",
                phrase: "Check that the upstream is running and that its port is right",
                "Check that it is running and that the port is right.")
        case .connectionFailed:
            self.init(
                502, "destination_ip_unroutable", .unreachable, "The upstream can't be reached",
                phrase: "Check the network between the proxy and the upstream",
                "Check the network between the proxy and the upstream.")
        case .shortage(let shortage): self = .shortage(shortage)
        case .connectionTimedOut, .withheld:
            self.init(
                504, "connection_timeout", .connectionTimeout, "The upstream did not accept the connection in time",
                phrase: "Check the network to the upstream, or raise its connect_timeout",
                "The connection was not ready within the upstream's connect_timeout. Check the network to the upstream, or "
                    + "raise connect_timeout.")
        case .connectionLimit:
            self.init(
                503, "connection_limit_reached", .connectionLimit, "Too many requests for this upstream",
                phrase: "Try again later, or raise the upstream's max_connections",
                "All of the upstream's max_connections are in use. Find out why the upstream is slow, or raise "
                    + "max_connections.", retryAfter: .seconds(1))
        case .addressDenied:
            self.init(
                403, "destination_ip_prohibited", .addressDenied, "The address is not allowed",
                phrase: "Add the address to proxy.private_networks if it may be reached",
                "Hosts that the configuration does not name may not be at a loopback, private or otherwise special "
                    + "address; `proxy.private_networks` lists exceptions.")
        case .loop: self = .loop
        case .tlsHandshake, .tlsCertificate, .tlsConfiguration: self = .tls(error)
        case .proxy where error.nextProxyStatus == 407: self = .nextProxyLogin
        case .proxy:
            self.init(
                502, "destination_unavailable", .nextProxy, "The next proxy refused",
                phrase: "Check the upstream's proxy: it refused, or can't be reached",
                "Check the upstream's `proxy`.")
        case .connectionLost:
            self.init(
                502, "connection_terminated", .connectionLost, "The upstream closed the connection",
                phrase: "Try again if that does no harm: the upstream closed the connection",
                "The connection ended before an answer came. The upstream may have carried out the request.")
        case .responseTruncated: self = .cut(error)
        case .http2Only(let isSecure):
            self.init(
                502, "http_protocol_error", .malformedResponse, "The upstream speaks HTTP/2 only",
                Self.sentences(TLSFault.http2Advice(.upstream, isSecure: isSecure)))
        case .responseMalformed: self = .malformed(error)
        case .aborted: self = .malformedResponse
        case .http2Missing, .internal: self = .internalError
        }
    }

    private static func cut(_ error: TransportError) -> Problem {
        // The words are ours and OpenSSL's.
        guard ["close_notify", "unexpected eof"].contains(where: error.message.contains) else {
            return Problem(
                502, "http_response_incomplete", .responseCut, "The upstream's answer was cut short",
                phrase: "Check the upstream: it cut its answer short",
                "The connection ended before the answer was whole.")
        }
        return Problem(
            502, "http_response_incomplete", .responseCut, "The upstream's answer ended without close_notify",
            phrase: "Check the upstream: it ended TLS without close_notify",
            "The server ended TLS without close_notify, so the answer may have been cut on the way. It has to send "
                + "close_notify, or Content-Length.")
    }

    /// The problem of a failed look-up.
    private static func name(_ error: TransportError) -> Problem {
        error.kind == .nameTimedOut
            ? Problem(
                504, "dns_timeout", .dnsTimeout, "The name server does not answer",
                phrase: "Check the proxy's name servers: they did not answer in time",
                named(error, "Check the name servers that the proxy uses (/etc/resolv.conf)."))
            : Problem(
                502, "dns_error", .dns, "The upstream's name can't be resolved",
                phrase: "Check the upstream's host or url: the name can't be resolved",
                named(error, "Check the upstream's host or url."))
    }

    private static func tls(_ error: TransportError) -> Problem {
        if error.kind == .tlsConfiguration {
            return Problem(
                502, "proxy_configuration_error", .tlsConfiguration, "A TLS file of the upstream can't be used",
                phrase: "Check ca_file, cert_file and key_file under the upstream's tls",
                "Check ca_file, cert_file and key_file under the upstream's `tls`.")
        }
        let texts = sentences(TLSFault(words: error.message).advice(.upstream))
        return error.kind == .tlsCertificate
            ? Problem(
                502, "tls_certificate_error", .tlsCertificate, "The upstream's certificate is not trusted", texts)
            : Problem(502, "tls_protocol_error", .tls, "TLS with the upstream failed", texts)
    }

    /// Puts the resolver's words, which name the host, in front of the advice.
    private static func named(_ error: TransportError, _ advice: String) -> String {
        guard let first = error.message.first else { return advice }
        return ForeignText.printable(first.uppercased() + error.message.dropFirst(), most: 300) + ". " + advice
    }

    private init(
        _ status: Int, _ error: String, _ word: ProblemWord, _ title: String, _ texts: (phrase: String, detail: String)
    ) {
        self.init(status, error, word, title, phrase: texts.phrase, texts.detail)
    }

    /// Returns the reason phrase and the detail for a fault and its remedy, which a colon separates. The phrase says the
    /// same as the detail, if need be without the remedy.
    private static func sentences(_ advice: String) -> (phrase: String, detail: String) {
        let sentence = advice.prefix(1).uppercased() + advice.dropFirst()
        let fault = advice.firstRange(of: ": ").map { String(advice[..<$0.lowerBound]) } ?? advice
        let phrase = Self.phrase([sentence, "Check the upstream: \(fault)", "Upstream: \(fault)"])
        return (phrase, sentence + ".")
    }

    /// The problem of a failed dial for a tunnel. Its texts name the target of CONNECT, not an upstream.
    init(tunnel error: TransportError) {
        switch error.kind {
        case .nameNotResolved:
            self.init(
                502, "dns_error", .dns, "The host's name can't be resolved",
                phrase: "Check the host that CONNECT names: it can't be resolved",
                Self.named(error, "Check the host that CONNECT names."), closes: true)
        case .connectionRefused:
            self.init(
                502, "connection_refused", .connectionRefused, "The other end refuses connections",
                phrase: "Check that something listens at the host and port of CONNECT",
                "Check that something listens at the host and port that CONNECT names.", closes: true)
        case .connectionFailed:
            self.init(
                502, "destination_ip_unroutable", .unreachable, "The other end can't be reached",
                phrase: "Check the network to the host that CONNECT names",
                "Check the network between the proxy and the host that CONNECT names.", closes: true)
        case .connectionTimedOut: self = .tunnelTimeout
        default:
            self.init(error)
        }
    }

    private static func shortage(_ shortage: MachineShortage) -> Problem {
        let fault = shortage.fault
        return Problem(
            503, "proxy_internal_error", .machineShortage, "The proxy's machine can't make the connection",
            phrase: "Check the proxy's own machine: its limits of files, ports and memory",
            "\(fault.prefix(1).uppercased())\(fault.dropFirst()): \(shortage.remedy).", retryAfter: .seconds(1))
    }

    /// The problem of an answer whose fault is known: `error` has our sentence about it.
    private static func malformed(_ error: TransportError) -> Problem {
        var words = ForeignText.printable(error.message.prefix(1).uppercased() + error.message.dropFirst(), most: 300)
        guard words.count > 1 else { return malformedResponse }
        if words.hasSuffix(".") { words.removeLast() }
        var problem = malformedResponse
        // A long field name may leave no room for the place.
        let short = words.firstRange(of: " (line ").map { words[..<$0.lowerBound] } ?? words[...]
        problem.phrase = phrase([
            "Check the upstream: \(words)", "Upstream: \(words)", "Check the upstream: \(short)", problem.phrase,
        ])
        problem.detail = "\(words). \(problem.detail)"
        return problem
    }

    static let nextProxyLogin = Problem(
        502, "destination_unavailable", .nextProxy, "The next proxy requires a name and password",
        phrase: "Set a name and password in the upstream's proxy",
        "The next proxy answered 407: it requires a name and password, or refuses those in the upstream's `proxy`. Write "
            + "http://NAME:PASSWORD@HOST:PORT there.")
    static let malformedResponse = Problem(
        502, "http_protocol_error", .malformedResponse, "The upstream's answer can't be understood",
        phrase: "Check the upstream: its answer is no valid HTTP",
        "The answer is not valid HTTP, or two parsers could read it differently.")
    static let unaskedUpgrade = Problem(
        502, "http_upgrade_failed", .unaskedUpgrade, "The upstream switched protocols unasked",
        phrase: "Check the upstream: it switched protocols unasked",
        "The upstream answered 101 to a request that did not ask for an upgrade.")
    static let responseTimeout = Problem(
        504, "http_response_timeout", .responseTimeout, "The upstream did not answer in time",
        phrase: "Check why the upstream is slow, or raise its response_timeout",
        "No answer came within the upstream's response_timeout. Find out why the upstream is slow, or raise "
            + "response_timeout.")
    static let tunnelTimeout = Problem(
        504, "connection_timeout", .connectionTimeout, "The other end did not accept the connection in time",
        phrase: "Check the network to the host that CONNECT names",
        "The connection was not ready within five seconds.", closes: true)
    static let expectationFailed = Problem(
        417, "http_request_error", .expectationFailed, "The upstream refuses the expectation",
        phrase: "Send the request again without Expect",
        "Send the request again without `Expect`.", closes: true)
}
