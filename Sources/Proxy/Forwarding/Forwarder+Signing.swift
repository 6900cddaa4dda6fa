import Configuration
import HTTPMessage
import HTTPServer
import Reactor
import SigV4
import WireText

// Signed requests (`inject: {sigv4: …}`): the signature covers the head as sent, and the body if the service requires
// it.
extension Forwarder {
    struct Signing {
        var keys: SigningKeys
        /// The body's value in the signature; `nil` while the body is read.
        var payload: [UInt8]?
        var digest: PayloadDigest?
    }

    /// Determines the body's value in the signature. Reads the whole body if its digest is needed.
    func prepareSignature(_ signer: RequestSigner, _ keys: SigningKeys) -> Bool {
        current.signing = Signing(keys: keys)
        let isSecure = current.admitted.destination?.scheme == .https
        let verdict = stream.request.with { SignedPayload.judge($0, $1, signer, isSecure: isSecure) }
        switch verdict {
        case .known(let payload):
            current.signing?.payload = payload
            return true
        case .refused(let problem): fail(problem)
        case .read: collectBody()
        }
        return false
    }

    // MARK: The body's digest

    private func collectBody() {
        guard let rules = current.admitted.rules else { return fail(.internalError) }
        let limit = rules.settings.maxReplayBytes
        if case .length(let length) = current.exchange.request.framing, length > UInt64(limit) {
            return fail(.bodyNotSignable)
        }
        do { current.signing?.digest = try PayloadDigest() } catch { return fail(.internalError) }
        stream.keepBody(upTo: limit)
        current.exchange.collect()
        if current.exchange.request.expectsContinue {
            // The proxy sends 100 itself: the upstream gets the request after the whole body.
            current.exchange.request.expectsContinue = false
            stream.answer(AnswerHead(100), reason: Array("Continue".utf8).span) { _ in }
        }
        goOnCollecting()
    }

    func goOnCollecting() {
        var bytes: InlineArray<16384, UInt8> = .init(repeating: 0)
        while current.exchange.isCollecting {
            guard hasShareLeft else {
                _ = waitForTurn()
                return
            }
            var span = bytes.mutableSpan
            let step: BodyReading
            do throws(MessageError) { step = try stream.readBody(into: &span) } catch {
                return fail(Problem(inBody: error))
            }
            switch step {
            case .bytes(let count):
                do { try current.signing?.digest?.update(span.span.extracting(first: count)) } catch {
                    return fail(.internalError)
                }
                if let limit = self.rules.settings.maxBodyBytes, stream.progress.bodyTaken > limit {
                    return fail(.bodyTooLarge)
                }
                guard stream.progress.canRewind else { return fail(.bodyNotSignable) }
            case .wait: return keepTime()
            case .cut: return fail(.bodyCut)
            case .gone: return leave()
            case .end: return bodyCollected()
            }
        }
    }

    private func bodyCollected() {
        guard stream.rewindBody(), let payload = try? current.signing?.digest?.finish() else {
            return fail(.bodyNotSignable)
        }
        current.signing?.digest = nil
        current.signing?.payload = payload
        stream.setDeadline(after: .off)
        current.exchange.judge()
        goOn()
    }

    // MARK: The head

    func signedTarget(_ upstream: Upstream, _ bytes: Span<UInt8>) -> SignableTarget {
        var text = ByteBuffer(isSecret: true)
        writePath(upstream, bytes, to: &text)
        return SignableTarget(text.bytes)
    }

    /// Appends the fields of the signature. It covers the head behind `start`.
    /// - Returns: `false` when signing failed.
    func writeSignature(
        _ signer: RequestSigner, _ target: SignableTarget, from start: Int, to output: inout ByteBuffer
    ) -> Bool {
        guard let signing = current.signing, let payload = signing.payload else { return false }
        let date = RequestSigner.date(RequestSigner.now())
        let namesPayload = signer.isStorage || stream.request.with { SignedPayload.own($0, $1) != nil }
        let request = Self.signed(output.bytes.extracting(start...), target, payload, namesPayload)
        guard let signature = try? signer.sign(request, with: signing.keys, date: date) else { return false }
        if namesPayload { output.append(line: "X-Amz-Content-Sha256: ", payload) }
        output.append(line: "X-Amz-Date: ", date)
        signing.keys.withToken { token in
            output.append("X-Amz-Security-Token: ")
            output.append(token)
            output.append("\r\n")
        }
        output.append(line: "Authorization: ", signature)
        return true
    }

    private static func signed(
        _ text: Span<UInt8>, _ target: SignableTarget, _ payload: [UInt8], _ namesPayload: Bool
    ) -> RequestSigner.Request {
        let head = OutgoingHead(text)
        var request = RequestSigner.Request(
            method: [UInt8](copying: head.method), target: target, payload: payload, namesPayload: namesPayload)
        head.forEachField { name, value in
            let name = [UInt8](copying: name).map(ASCII.lowercased)
            guard RequestSigner.signs(name) else { return }
            request.fields.append((name, [UInt8](copying: value)))
        }
        return request
    }
}
