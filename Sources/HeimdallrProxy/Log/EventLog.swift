import Administration
import Heimdallr
import Logging
import Proxy
import Reactor
import Reports

/// Log lines about tokens and failures: one line for each event, without secrets. Lines about failures share the fields
/// `reason`, `url`, `cause` (with libcurl's message) and `what_to_do`, as far as these are known.
enum EventLog {
    static func write(_ failure: UpstreamFailure, to logger: Logger) {
        var fields: Logger.Metadata = [
            "upstream": "\(failure.upstream)", "url": "\(String(decoding: failure.url, as: UTF8.self))",
            "request_id": "\(String(decoding: failure.requestID, as: UTF8.self))", "reason": "\(failure.reason)",
            "cause": "\(failure.error)", "what_to_do": "\(failure.advice)",
        ]
        if let client = failure.client { fields["client"] = "\(client)" }
        logger.warning("upstream failed", metadata: fields)
    }

    static func write(_ refusal: CredentialRefusal, to logger: Logger) {
        var fields: Logger.Metadata = [
            "upstream": "\(refusal.upstream)", "rule": "upstreams[\(refusal.rule)]",
            "url": "\(String(decoding: refusal.url, as: UTF8.self))",
            "request_id": "\(String(decoding: refusal.requestID, as: UTF8.self))",
            "status": .stringConvertible(refusal.status), "inject": "\(refusal.injection)",
            "what_to_do":
                "\(RefusedCredential.advice(status: refusal.status, client: refusal.client, injection: refusal.injection))",
        ]
        if let client = refusal.client { fields["client"] = "\(client)" }
        logger.warning("an API keeps refusing a credential", metadata: fields)
    }

    static func write(_ report: LimitReport, to logger: Logger) {
        var fields: Logger.Metadata = [
            "limit": "\(report.limit.key)", "reason": "\(report.limit.reason)",
            "request_id": "\(String(decoding: report.requestID, as: UTF8.self))",
            "what_to_do": "\(report.limit.remedy)",
        ]
        if !report.upstream.isEmpty { fields["upstream"] = "\(report.upstream)" }
        if !report.url.isEmpty { fields["url"] = "\(String(decoding: report.url, as: UTF8.self))" }
        if report.others > 0 { fields["others"] = .stringConvertible(report.others) }
        logger.warning("a limit ended an exchange", metadata: fields)
    }

    static func write(_ failure: FailedHandshake, to logger: Logger) {
        var fields: Logger.Metadata = [
            "target": "\(failure.target)", "reason": "\(failure.reason)", "what_to_do": "\(failure.remedy)",
        ]
        if !failure.caller.isEmpty { fields["caller"] = "\(failure.caller)" }
        if let program = failure.program { fields["program"] = "\(program)" }
        if let others = failure.others, others > 0 { fields["others"] = .stringConvertible(others) }
        logger.warning("a program got no TLS from the proxy", metadata: fields)
    }

    /// Logs one token request at debug level.
    static func write(_ report: TokenRequestReport, to logger: Logger) {
        logger.debug(
            "a token was requested",
            metadata: [
                "client": "\(report.client)", "grant_type": "\(report.grantType)",
                "result": "\(report.result.rawValue)",
                "duration_ms": .stringConvertible(report.duration.wholeMilliseconds),
            ])
    }

    static func write(_ export: ExportReport, to logger: Logger) {
        var fields: Logger.Metadata = ["client": "\(export.client)", "format": "\(export.format)"]
        if let user = export.user { fields["uid"] = .stringConvertible(user) }
        if let end = export.end { fields["until"] = "\(end)" }
        if let file = export.file { fields["file"] = "\(file)" }
        logger.info("a program got a token", metadata: fields)
    }

    static func write(_ notice: ExportNotice, to logger: Logger) {
        switch notice {
        case .failing(let collector, let reason):
            logger.warning("spans can't be exported", metadata: ["collector": "\(collector)", "reason": "\(reason)"])
        case .resumed(let dropped):
            logger.info("spans are exported again", metadata: ["dropped_so_far": .stringConvertible(dropped)])
        case .rejected(let count, let collector, let reason):
            logger.warning(
                count > 0 ? "the collector rejected some spans" : "the collector sent a warning",
                metadata: [
                    "collector": "\(collector)", "rejected": .stringConvertible(count), "reason": "\(reason)",
                ])
        case .unsent(let count):
            logger.warning("spans were not exported before the exit", metadata: ["spans": .stringConvertible(count)])
        }
    }

    static func write(
        _ event: HeimdallrEvent, of client: Heimdallr, last: LastTokenRequest?, to logger: Logger,
        signIn: (String) -> SignInHint
    ) {
        var fields: Logger.Metadata = ["client": "\(event.client)", "event": "\(event.name)"]
        switch event.kind {
        case .tokenAcquired(let expiresIn, let stored):
            fields["expires_in"] = expiresIn.map { .stringConvertible(LogSeconds($0)) }
            if stored { fields["source"] = "store" }
            let status = client.status()
            if let person = status.signedInAs { fields["signed_in_as"] = "\(person)" }
            if let person = status.formerlySignedInAs { fields["formerly_signed_in_as"] = "\(person)" }
            logger.info("token acquired", metadata: fields)
        case .tokenRefreshed(let expiresIn):
            fields["expires_in"] = expiresIn.map { .stringConvertible(LogSeconds($0)) }
            logger.info("token refreshed", metadata: fields)
        // An unused token expires without a refresh (rule 10), so this is not a warning.
        case .tokenLost(.expired):
            fields["reason"] = "expired"
            logger.info("token expired", metadata: fields)
        case .tokenLost(let reason):
            fields["reason"] = "\(reason.rawValue)"
            logger.warning("token lost", metadata: fields)
        case .tokenFailed(let error):
            fields["reason"] = "\(error)"
            if !error.wasNotSent {
                if let url = last?.url { fields["url"] = "\(url)" }
                if let cause = last?.cause { fields["cause"] = "\(cause)" }
            }
            if let retryAfter = error.retryAfter, retryAfter > .zero {
                fields["retry_in"] = .stringConvertible(LogSeconds(roundingUp: retryAfter))
            }
            fields["what_to_do"] = "\(Advice(client.status()).sentence(for: error))"
            logger.warning(
                error.wasNotSent ? "no token was requested" : "no token from the token endpoint", metadata: fields)
        case .loginFailed(let error):
            fields["reason"] = "\(error)"
            if let advice = Advice(client.status()).sentence(for: error) { fields["what_to_do"] = "\(advice)" }
            logger.warning("a sign-in was refused or failed", metadata: fields)
        case .needsAuthentication:
            if let reason = client.status().needsAuthenticationBecause { fields["reason"] = "\(reason)" }
            add(signIn(event.client), &fields)
            logger.warning("somebody has to sign in", metadata: fields)
        case .moreConsentNeeded(let scope):
            if !scope.isEmpty { fields["scope"] = "\(scope.joined(separator: " "))" }
            add(signIn(event.client), &fields)
            logger.warning("more consent needed: the API wants more scopes or a newer sign-in", metadata: fields)
        case .refreshTokenEnding(let expiresIn):
            fields["expires_in"] = .stringConvertible(LogSeconds(expiresIn))
            add(signIn(event.client), &fields)
            logger.warning("somebody has to sign in soon: the refresh token ends", metadata: fields)
        }
    }

    private static func add(_ hint: SignInHint, _ fields: inout Logger.Metadata) {
        if let url = hint.url { fields["login_url"] = "\(url)" }
        fields["what_to_do"] = "\(hint.advice)"
    }
}

/// A duration in a log line: `59s` in text, the number 59 in JSON.
struct LogSeconds: CustomStringConvertible, Sendable {
    let count: Int64

    /// Rounds down to whole seconds, for a remaining time.
    init(_ duration: Duration) { count = duration.components.seconds }

    /// Rounds up to whole seconds, for a waiting time: half a second must not become 0.
    init(roundingUp duration: Duration) {
        count = duration.components.seconds + (duration.components.attoseconds > 0 ? 1 : 0)
    }

    var description: String { "\(count)s" }
}
