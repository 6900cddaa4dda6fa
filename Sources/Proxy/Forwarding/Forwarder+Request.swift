import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor

// What goes to the upstream: the request's head with the token in its place, and its body.
extension Forwarder: UpstreamExchangeDelegate {
    // MARK: Head

    /// A request may have waited for its connection: in the pool's queue, for the connect, for the handshake. A token
    /// that has expired or been refused meanwhile does not leave (rule 1).
    func lastLook() -> LastLook {
        // What is sent in the turn in which its token was taken has not waited.
        guard current.handedOver != connection.now, let token = current.token, let client = current.upstream?.client
        else { return .unchanged }
        guard let newest = client.currentToken() else { return .withhold }
        guard newest.generation != token.generation else { return .unchanged }
        current.token = newest
        return .changed
    }

    func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep {
        guard let upstream = current.upstream, let destination = current.admitted.destination,
            lastLook() != .withhold
        else { return .withhold }
        let credential = current.token.map { upstream.credential(for: $0) }
        connection.withHead { head, bytes in
            output.append(bytes[head.method])
            output.append(" ")
            writeTarget(form, destination, credential, bytes, to: &output)
            output.append(" HTTP/1.1\r\nHost: ")
            if upstream.rules.settings.keepsHost, let authority = current.admitted.asked?.authority {
                output.append(Array(authority.description.utf8))
            } else {
                output.append(destination.host)
            }
            output.append("\r\n")
            writeFields(head, bytes, upstream.rules, to: &output)
        }
        if case .header(let name, let value) = credential {
            output.append(Array(name.utf8))
            output.append(": ")
            value.withSpan { output.append($0) }
            output.append("\r\n")
        }
        if let offer = current.admitted.upgrade {
            output.append("Connection: Upgrade\r\nUpgrade: ")
            output.append(offer.value)
            output.append("\r\n")
        }
        let isHTTP10 = current.exchange.request.isHTTP10
        output.append(isHTTP10 ? "Via: 1.0 heimdallr-proxy\r\n" : "Via: 1.1 heimdallr-proxy\r\n")
        return .send
    }

    private func writeTarget(
        _ form: HeadForm, _ destination: Destination, _ credential: RequestCredential?, _ bytes: Span<UInt8>,
        to output: inout ByteBuffer
    ) {
        if form.isAbsolute {
            output.append(Array(destination.origin.scheme.rawValue.utf8))
            output.append("://")
            output.append(destination.host)
        }
        guard case .path(let range) = current.admitted.target, let rules = current.admitted.rules else {
            if !form.isAbsolute { output.append("*") }
            return
        }
        let path = bytes[range]
        output.append(rules.pathPrefix)
        if path.isEmpty || path[0] != UInt8(ascii: "/") { output.append("/") }
        if case .query(_, let value) = credential {
            QueryInjection.append(path, setting: rules.injectedParameter, to: value, &output)
        } else {
            output.append(path)
        }
    }

    private func writeFields(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ rules: UpstreamRules, to output: inout ByteBuffer
    ) {
        let dropped: [UInt8] = current.token == nil ? [] : rules.injectedField
        let expectsContinue = current.exchange.request.expectsContinue
        for field in head.fields {
            if field.isHopByHop || field.known == .host { continue }
            if !dropped.isEmpty, bytes[field.name].namesField(dropped) { continue }
            // Nothing waits for 100 without a body; HTTP/1.0 knows no 100 (RFC 9110, section 10.1.1).
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
        let step: ServerConnection.BodyStep
        do throws(MessageError) { step = try connection.takeBody(into: &bytes) } catch {
            _ = refuse(Problem(inBody: error))
            return .abort
        }
        if let limit = shard.settings.maxBodyBytes, connection.bodyTaken > limit {
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
        case .gone: return .abort
        }
    }

    /// What `Connection` names stops here, and nothing stands in for the token.
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])] {
        let trailers = connection.bodyTrailers
        guard !trailers.isEmpty else { return [] }
        let ours = current.token == nil ? [] : current.admitted.rules?.injectedField ?? []
        return connection.withHead { head, bytes in
            trailers.filter { trailer in
                !head.connectionNames(trailer.name.span, in: bytes)
                    && (ours.isEmpty || !trailer.name.span.namesField(ours))
            }
        }
    }
}
