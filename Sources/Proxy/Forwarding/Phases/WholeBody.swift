import Configuration
import HTTPMessage
import HTTPServer
import Reactor
import SigV4

/// Keys of a signed request (`inject: {sigv4: …}`), and the payload value in its signature.
struct Signing {
    var keys: SigningKeys
    /// Digest of the body, or a constant for an unsigned body; `nil` while the body is read.
    var payload: [UInt8]?
    var digest: PayloadDigest?
}

/// Reads the whole body before the request is sent or answered: if the signature needs its digest, the request offers an
/// upgrade, or the proxy answers a token request.
enum WholeBody {
    static func begin(_ context: inout Context, _ signer: RequestSigner, _ keys: SigningKeys) -> Action {
        context.signing = Signing(keys: keys)
        let isSecure = context.admitted.destination?.scheme == .https
        let verdict = context.stream.request.with { SignedPayload.judge($0, $1, signer, isSecure: isSecure) }
        switch verdict {
        case .known(let payload):
            context.signing?.payload = payload
            return .next
        case .refused(let problem): return .fail(problem)
        case .read: return collect(&context)
        }
    }

    static func collect(_ context: inout Context) -> Action {
        guard let rule = context.admitted.rule else { return .fail(Problem(.internalError)) }
        let limit = rule.settings.maxReplayBytes
        if case .length(let length) = context.exchange.request.framing, length > UInt64(limit) {
            return .fail(tooLong(context))
        }
        if context.signing?.payload == nil {
            do { context.signing?.digest = try PayloadDigest() } catch { return .fail(Problem(.internalError)) }
        }
        context.stream.keepBody(upTo: limit, isNeeded: true)
        if context.exchange.collect() {
            context.stream.answer(AnswerHead(100), reason: Array("Continue".utf8).span) { _ in }
        }
        return .collectBody
    }

    /// Reads the bytes that have arrived, within the limits of the body and of this turn.
    /// - Returns: `.next` when the digest is complete.
    static func goOn(_ context: inout Context, _ share: inout TurnShare) -> Action {
        context.exchange.resume()
        var bytes: InlineArray<16384, UInt8> = .init(repeating: 0)
        while true {
            guard share.takesMore(turn: context.shard.loop.now, now: .current()) else {
                context.exchange.shareIsSpent()
                return .wait
            }
            var span = bytes.mutableSpan
            let reading: BodyReading
            do throws(MessageError) { reading = try context.stream.readBody(into: &span) } catch {
                return .fail(Problem(error, inBody: true))
            }
            switch reading {
            case .bytes(let count):
                do { try context.signing?.digest?.update(span.span.extracting(first: count)) } catch {
                    return .fail(Problem(.internalError))
                }
                let progress = context.stream.progress
                if let limit = context.installed.settings.maxBodyBytes, progress.bodyTaken > limit {
                    return .fail(Problem(.bodyTooLarge))
                }
                guard progress.canRewind else { return .fail(tooLong(context)) }
            case .wait:
                context.exchange.pieceCame()
                return .wait
            case .cut: return .fail(Problem(.bodyCut))
            case .gone: return .leave(closes: false)
            case .end: return finish(&context)
            }
        }
    }

    private static func tooLong(_ context: Context) -> Problem {
        if context.admitted.rule?.issues == true { return Problem(.tokenRequestTooLarge) }
        // A signing with a payload needs no digest.
        let lacksDigest = context.signing.map { $0.payload == nil } ?? false
        return Problem(lacksDigest ? .bodyNotSignable : .upgradeBodyTooLarge)
    }

    private static func finish(_ context: inout Context) -> Action {
        if context.exchange.request.offersUpgrade, context.stream.hasInput(reading: true) != false {
            return .fail(Problem(.bytesBeforeUpgrade))
        }
        guard context.stream.rewindBody() else { return .fail(tooLong(context)) }
        if context.signing?.digest != nil {
            guard let payload = try? context.signing?.digest?.finish() else { return .fail(Problem(.internalError)) }
            context.signing?.digest = nil
            context.signing?.payload = payload
        }
        context.exchange.collected()
        return .next
    }
}
