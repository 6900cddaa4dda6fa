import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import SigV4

// Writes the request for the upstream: the head with its token, and the body.
extension Forwarder: UpstreamExchangeDelegate {
    // MARK: Head

    /// Checks the token again after a wait for the connection. A token that expired or was refused is not sent (rule
    /// 1).
    func lastLook(over pair: UInt64?) -> LastLook {
        let look = lookAtToken()
        guard look != .withhold, let pair, let bound = current.token?.certificate, bound != pair else { return look }
        // RFC 8705, section 3: the certificate was replaced after the token was issued.
        return current.upstream?.rules.settings.showsForeignCertificate == true ? look : .withhold
    }

    private func lookAtToken() -> LastLook {
        // A request sent in the turn of its token has not waited.
        guard current.ledger.times.asked != shard.loop.now, let token = current.token, let client = current.client
        else { return .unchanged }
        guard let newest = client.currentToken() else { return .withhold }
        guard newest.generation != token.generation else { return .unchanged }
        current.token = newest
        return .changed
    }

    var hasTokenEnded: Bool { current.token?.isExpired(at: .now) ?? false }

    func upstreamConnected(isReused: Bool) {
        current.ledger.times.connect(shard.loop.now, isReused: isReused)
        if !current.admitted.entries.isEmpty { current.ledger.gaveCredential = true }
    }

    func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep {
        guard let upstream = current.upstream, let destination = current.admitted.destination,
            lastLook(over: form.pair) != .withhold
        else { return .withhold }
        let entries = current.admitted.entries
        guard upstream.injected.hasFixed(entries) else { return .withhold }
        let signer = upstream.injected.signer(entries)
        var target: SignableTarget?
        let start = output.count
        stream.request.with { head, bytes in
            output.append(bytes[head.method])
            output.append(" ")
            if signer != nil { target = signedTarget(upstream, bytes) }
            writeTarget(form, destination, upstream, target, bytes, to: &output)
            output.append(" HTTP/1.1\r\nHost: ")
            output.append(hostField(upstream, destination))
            output.append("\r\n")
            let dropped = upstream.rules.injection.dropped(entries)
            writeFields(head, bytes, dropped, to: &output)
            output.append(upstream.rules.injection.setLines)
            if let mark = current.mark { writeMark(mark, dropped, to: &output) }
        }
        writeCredentials(entries, upstream, to: &output)
        var isSigned = true
        if let token = current.token, let key = token.binding {
            isSigned = writeProof(by: key, of: token, upstream, destination, from: start, to: &output)
        }
        if let signer, let target { isSigned = writeSignature(signer, target, from: start, to: &output) }
        if let offer = current.admitted.upgrade {
            output.append("Connection: Upgrade\r\nUpgrade: ")
            output.append(offer.value)
            output.append("\r\n")
        }
        let isHTTP10 = current.exchange.request.isHTTP10
        output.append(isHTTP10 ? "Via: 1.0 heimdallr-proxy\r\n" : "Via: 1.1 heimdallr-proxy\r\n")
        return isSigned ? .send : .withhold
    }

    func hostField(_ upstream: Upstream, _ destination: Destination) -> [UInt8] {
        guard upstream.rules.settings.keepsHost, let authority = current.admitted.asked?.authority else {
            return destination.host
        }
        return Array(authority.description.utf8)
    }

    private func writeTarget(
        _ form: HeadForm, _ destination: Destination, _ upstream: Upstream, _ signed: SignableTarget?,
        _ bytes: Span<UInt8>, to output: inout ByteBuffer
    ) {
        if form.isAbsolute {
            output.append(Array(destination.origin.scheme.rawValue.utf8))
            output.append("://")
            output.append(destination.host)
        }
        guard case .path = current.admitted.target else {
            if !form.isAbsolute { output.append("*") }
            return
        }
        if let signed { return output.append(signed.text) }
        writePath(upstream, bytes, to: &output)
    }

    /// Writes path and query with the injected parameters.
    func writePath(_ upstream: Upstream, _ bytes: Span<UInt8>, to output: inout ByteBuffer) {
        guard case .path(let range) = current.admitted.target else { return }
        let path = bytes[range]
        output.append(upstream.rules.pathPrefix)
        if path.isEmpty || path[0] != UInt8(ascii: "/") { output.append("/") }
        let (rules, entries) = (upstream.rules.injection, current.admitted.entries)
        guard rules.changesQuery(path, for: entries) else { return output.append(path) }
        QueryInjection.append(path, without: { rules.names($0, in: entries) }, &output)
        var isFirst = true
        for index in rules.targets.indices where entries.contains(index: index) {
            guard case .parameter(let name) = rules.targets[index],
                let value = upstream.injected.value(of: index, current.token)
            else { continue }
            if !isFirst { output.append(byte: UInt8(ascii: "&")) }
            isFirst = false
            QueryInjection.append(name, value, &output)
        }
    }

    private func writeCredentials(_ entries: EntrySet, _ upstream: Upstream, to output: inout ByteBuffer) {
        guard !entries.isEmpty else { return }
        let targets = upstream.rules.injection.targets
        for index in targets.indices where entries.contains(index: index) {
            guard case .field(_, let line) = targets[index],
                let value = upstream.injected.value(of: index, current.token)
            else {
                continue
            }
            output.append(line)
            value.withSpan { output.append($0) }
            output.append("\r\n")
        }
    }

    private func writeFields(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ dropped: FieldNames, to output: inout ByteBuffer
    ) {
        let expectsContinue = current.exchange.request.expectsContinue
        let dropsAuthorization = current.upstream?.exchangesCallers ?? false
        let mark = current.mark
        for field in head.fields {
            if let mark, Self.replaces(field, mark) { continue }
            if field.isHopByHop || field.known == .host { continue }
            if dropped.contains(bytes[field.name]) { continue }
            if dropsAuthorization, field.known == .authorization { continue }
            // No wait for 100 without a body; HTTP/1.0 has no 100 (RFC 9110, section 10.1.1).
            if field.known == .expect, !expectsContinue { continue }
            output.append(bytes[field.name])
            output.append(": ")
            if field.known == .maxForwards, let maxForwards = current.admitted.maxForwards {
                output.append(decimal: maxForwards)
            } else if field.known == .destination, let map = current.admitted.addressMap {
                map.append(destination: bytes[field.value], to: &output)
            } else {
                output.append(bytes[field.value])
            }
            output.append("\r\n")
        }
    }

    // MARK: Body

    func takeUpload(into bytes: inout MutableSpan<UInt8>) -> UploadStep {
        if current.exchange.request.offersUpgrade { return takeSwitched(into: &bytes) }
        let step: BodyReading
        do throws(MessageError) { step = try stream.readBody(into: &bytes) } catch {
            _ = refuse(Problem(inBody: error))
            return .abort
        }
        if let limit = rules.settings.maxBodyBytes, stream.progress.bodyTaken > limit {
            _ = refuse(.bodyTooLarge)
            return .abort
        }
        switch step {
        case .bytes(let count):
            current.exchange.bodyAsked(isThere: true)
            keepTime()
            return .bytes(count)
        case .wait:
            current.exchange.bodyAsked(isThere: false)
            if !current.exchange.isAnswered { keepTime() }
            return .wait
        case .end: return .end
        case .cut:
            _ = refuse(.bodyCut)
            return .abort
        case .gone:
            leave()
            return .abort
        }
    }

    /// Trailers without the hop-by-hop ones and those named like fields that don't go out.
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])] {
        let trailers = stream.request.trailers
        guard !trailers.isEmpty else { return [] }
        let dropped = current.admitted.rules?.injection.dropped(current.admitted.entries) ?? FieldNames()
        return stream.request.with { head, bytes in
            trailers.filter { trailer in
                !head.connectionNames(trailer.name.span, in: bytes) && !dropped.contains(trailer.name.span)
            }
        }
    }
}

extension Exchange.Request {
    init(_ head: RequestHead) {
        isHead = head.methodKind == .head
        isHTTP10 = head.version == .http10
        isIdempotent = head.methodKind.isIdempotent
        expectsContinue = head.expectsContinue
        keepsAlive = head.keepAlive
        framing = head.framing
    }
}

extension UpstreamRequest {
    init(_ origin: Origin, _ request: Exchange.Request, isFresh: Bool) {
        self.init(origin: origin)
        isHead = request.isHead
        expectsContinue = request.expectsContinue
        self.isFresh = isFresh
        upload =
            switch request.framing {
            case .length(let length) where length > 0: .length(length)
            case .chunked: .chunked
            default: request.offersUpgrade ? .upgrade : .none
            }
    }
}
