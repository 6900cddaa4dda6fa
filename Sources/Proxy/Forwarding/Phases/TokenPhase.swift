import Configuration
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import Reports
import WireText

/// Finds the request's credential: none, the program's own, fixed values, signing keys or a token.
enum TokenPhase {
    static func run(_ context: inout Context) -> Action {
        guard let upstream = context.upstream else { return .fail(Problem(.internalError)) }
        let entries = context.admitted.entries
        if context.signing == nil, let signer = upstream.injected.signer(entries) {
            guard let keys = upstream.injected.signingKeys else {
                context.ledger.injection = .failed
                return .fail(Problem(.noCredential))
            }
            let action = WholeBody.begin(&context, signer, keys)
            guard case .next = action else { return action }
        }
        if context.exchange.request.awaitsWholeBody { return WholeBody.collect(&context) }
        switch context.admitted.credential {
        case .none: return .next
        case .kept:
            context.ledger.injection = .kept
            return .next
        case .put(let entries): return find(entries, upstream, &context)
        }
    }

    private static func find(_ entries: EntrySet, _ upstream: Upstream, _ context: inout Context) -> Action {
        let rule = upstream.rule
        guard upstream.injected.hasFixed(entries) else {
            context.ledger.injection = .failed
            return .fail(Problem(.noCredential))
        }
        guard !entries.isDisjoint(with: rule.injection.tokens) else {
            // If the upstream injects a token, `entries` lacks it because the program's own token stays.
            context.ledger.injection = rule.injection.tokens.isEmpty ? .injected : .kept
            return .next
        }
        if context.exchange.request.replaysUnauthorized || rule.settings.provesPossession {
            context.stream.keepBody(upTo: rule.settings.maxReplayBytes)
        }
        context.ledger.injection = .failed
        do throws(Problem) { context.oauthClient = try client(at: upstream, context) } catch {
            return .fail(error)
        }
        guard let token = upstream.currentToken(of: context.oauthClient) else {
            return goesWithoutToken(&context) ? .next : .awaitToken(insteadOf: nil)
        }
        context.token = token
        context.ledger.injection = .injected
        return .next
    }

    /// Whether to send the request without a token: before a sign-in of `client: auto`, to get the API's challenge.
    static func goesWithoutToken(_ context: inout Context) -> Bool {
        guard context.upstream?.enrols == true, context.oauthClient?.sendsWithoutToken() == true else { return false }
        context.ledger.injection = nil
        return true
    }

    /// Returns the upstream's OAuth client, or the client that exchanges this caller's token (RFC 8693).
    private static func client(at upstream: Upstream, _ context: borrowing Context) throws(Problem) -> Heimdallr? {
        guard let client = upstream.client, client.exchangesCallers else { return upstream.client }
        let placeholders = context.installed.gate.placeholders
        return try context.stream.request.with { head, bytes throws(Problem) in
            guard let token = BearerToken.range(head, bytes) else { throw Problem(.callerTokenNeeded) }
            // The token goes to the authorization server.
            if placeholders?.isIn(credential: bytes[token]) == true { throw Problem(.placeholderElsewhere) }
            do throws(CallerRefusal) { return try client.client(of: bytes[token]) } catch { throw Problem(error) }
        }
    }

    /// Returns the answer to a program whose request gets no token.
    static func problem(_ error: HeimdallrError, _ context: Context) -> Problem {
        guard let upstream = context.upstream else { return Problem(.internalError) }
        if upstream.exchangesCallers {
            if error.refusesCallerToken { return Problem(.callerTokenRefused) }
            // The caller's token may have expired during the wait.
            do throws(Problem) { _ = try client(at: upstream, context) } catch { return error }
        }
        return Problem(
            error, client: upstream.rule.settings.client ?? "", signIn: context.shard.observer.signIn)
    }

    /// Replaces the token by the newest one after the wait for a connection. Withholds the request if there is no valid
    /// token (rule 1), or if the token is bound to another certificate than the connection's.
    /// - Parameter id: this process's number of the connection's client certificate; `nil` without one.
    static func lastLook(over id: UInt64?, _ context: inout Context) -> LastLook {
        let look = lookAgain(&context)
        guard look != .withhold, let id, let bound = context.token?.certificate, bound != id else { return look }
        // The certificate was replaced after the token was issued (RFC 8705, section 3).
        return context.upstream?.rule.settings.usesOtherCertificate == true ? look : .withhold
    }

    private static func lookAgain(_ context: inout Context) -> LastLook {
        // A request sent in the same turn as its token was found has not waited.
        guard context.ledger.times.asked != context.shard.loop.now, let token = context.token,
            let client = context.oauthClient
        else { return .unchanged }
        guard let newest = client.currentToken() else { return .withhold }
        guard newest.generation != token.generation else { return .unchanged }
        context.token = newest
        return .changed
    }
}

/// The token in `Authorization: Bearer` (RFC 6750, section 2.1).
enum BearerToken {
    /// Returns the range of the token; `nil` if Authorization is absent, repeated, hop-by-hop or of another scheme.
    static func range(_ head: RequestHead, _ bytes: Span<UInt8>) -> ByteRange? {
        guard let found = head.fields.value(ofOnly: { $0.known == .authorization && !$0.isHopByHop }),
            found.count > scheme.count
        else { return nil }
        let (start, end) = (Int(found.start), Int(found.end))
        var index = start + scheme.count
        guard bytes.extracting(start..<index).equalsIgnoringCase(scheme), bytes[index] == UInt8(ascii: " ") else {
            return nil
        }
        while index < end, bytes[index] == UInt8(ascii: " ") { index += 1 }
        return index < end ? ByteRange(index, end) : nil
    }

    private static let scheme = Array("bearer".utf8)
}
