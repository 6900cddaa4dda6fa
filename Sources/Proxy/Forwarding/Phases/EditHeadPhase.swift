import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Heimdallr
import Reactor
import SigV4

/// Writes the request's head for the upstream in one pass. Signatures are made from the written head
/// (`OutgoingHead`), so they always match it.
enum EditHeadPhase {
    /// Writes all lines in their order. Withholds the request if a credential is missing, expired or bound to another
    /// certificate, or if signing fails. The transport adds framing and the blank line.
    static func run(_ context: inout Context, _ form: HeadForm, to output: inout ByteBuffer) -> HeadStep {
        guard let upstream = context.upstream, let destination = context.admitted.destination,
            TokenPhase.lastLook(over: form.certificateID, &context) != .withhold
        else { return .withhold }
        let entries = context.admitted.entries
        guard upstream.injected.hasFixed(entries) else { return .withhold }
        let signer = upstream.injected.signer(entries)
        let start = output.count
        let target = signer.map { _ in signedTarget(&context, upstream) }
        let dropped = upstream.rule.injection.dropped(entries)
        writeRequestLine(&context, form, upstream, destination, target, to: &output)
        output.append(hostField(context.admitted.named, upstream, destination))
        output.append("\r\n")
        let takesTrailers = copyFields(&context, upstream, dropped, to: &output)
        if takesTrailers, form.isHTTP2 || context.exchange.request.isGRPC {
            output.append(form.isHTTP2 ? "TE: trailers\r\n" : "Connection: TE\r\nTE: trailers\r\n")
        }
        output.append(upstream.rule.injection.setLines)
        if let span = context.span { trace(span, dropped, to: &output) }
        if !entries.isEmpty { inject(entries, upstream, context.token, to: &output) }
        var isSigned = true
        if let token = context.token, let key = token.binding {
            isSigned = prove(&context, key, token, upstream, destination, from: start, to: &output)
        }
        if let signer, let target { isSigned = sign(&context, signer, target, from: start, to: &output) && isSigned }
        if let offer = context.admitted.upgrade {
            output.append("Connection: Upgrade\r\nUpgrade: ")
            output.append(offer.value)
            output.append("\r\n")
        }
        switch context.exchange.request.version {
        case _ where !upstream.rule.settings.addsVia: output.append("CDN-Loop: heimdallr-proxy\r\n")
        case .http10: output.append("Via: 1.0 heimdallr-proxy\r\n")
        case .http11: output.append("Via: 1.1 heimdallr-proxy\r\n")
        case .http2: output.append("Via: 2 heimdallr-proxy\r\n")
        }
        return isSigned ? .send : .withhold
    }

    // MARK: Request line and Host

    static func hostField(_ named: ProgramAddress?, _ upstream: Upstream, _ destination: Destination) -> [UInt8] {
        guard upstream.rule.settings.keepsHost, let authority = named?.authority else {
            return destination.host
        }
        return Array(authority.description.utf8)
    }

    private static func writeRequestLine(
        _ context: inout Context, _ form: HeadForm, _ upstream: Upstream, _ destination: Destination,
        _ signed: SignableTarget?, to output: inout ByteBuffer
    ) {
        context.stream.request.with { head, bytes in
            output.append(bytes[head.method])
            output.append(" ")
            if form.isAbsolute {
                output.append(Array(destination.origin.scheme.rawValue.utf8))
                output.append("://")
                output.append(destination.host)
            }
            switch context.admitted.target {
            case .asterisk: if !form.isAbsolute { output.append("*") }
            case .path(let path):
                if let signed {
                    output.append(signed.text)
                } else {
                    writePath(bytes[path], &context, upstream, to: &output)
                }
            }
        }
        output.append(" HTTP/1.1\r\nHost: ")
    }

    /// Writes path and query with the injected parameters.
    static func writePath(
        _ path: Span<UInt8>, _ context: inout Context, _ upstream: Upstream, to output: inout ByteBuffer
    ) {
        output.append(upstream.rule.pathPrefix)
        if path.isEmpty || path[0] != UInt8(ascii: "/") { output.append("/") }
        let (rules, entries) = (upstream.rule.injection, context.admitted.entries)
        guard rules.changesQuery(path, for: entries) else { return output.append(path) }
        writeQuery(path, entries, context.token, upstream, to: &output)
    }

    /// Writes the rest of a path and its query with the injected parameters.
    static func writeQuery(
        _ path: Span<UInt8>, _ entries: EntrySet, _ token: AccessToken?, _ upstream: Upstream,
        to output: inout ByteBuffer
    ) {
        let rules = upstream.rule.injection
        QueryInjection.append(path, without: { rules.names($0, in: entries) }, &output)
        var isFirst = true
        for index in rules.targets.indices where entries.contains(index: index) {
            guard case .parameter(let name) = rules.targets[index],
                let value = upstream.injected.value(of: index, token)
            else { continue }
            if !isFirst { output.append(byte: UInt8(ascii: "&")) }
            isFirst = false
            QueryInjection.append(name, value, &output)
        }
    }

    // MARK: Fields

    /// Copies the program's end-to-end fields, except Host and fields that the proxy replaces or removes. Rewrites
    /// Max-Forwards and Destination.
    /// - Returns: whether the program accepts trailers: it says so, or the request is a gRPC call.
    private static func copyFields(
        _ context: inout Context, _ upstream: Upstream, _ dropped: FieldNames, to output: inout ByteBuffer
    ) -> Bool {
        var takesTrailers = context.exchange.request.isGRPC
        let expectsContinue = context.exchange.request.expectsContinue
        let dropsAuthorization = upstream.exchangesCallers
        let span = context.span
        context.stream.request.with { head, bytes in
            for field in head.fields {
                if let span, span.replaces(field) { continue }
                if field.isHopByHop || field.known == .host {
                    if field.known == .te, bytes[field.value].equalsIgnoringCase(trailersCoding) {
                        takesTrailers = true
                    }
                    continue
                }
                if dropped.contains(bytes[field.name]) { continue }
                if dropsAuthorization, field.known == .authorization { continue }
                // The program needs no 100: it sends no body, uses HTTP/1.0, or has got the proxy's own 100.
                if field.known == .expect, !expectsContinue { continue }
                output.append(bytes[field.name])
                output.append(": ")
                if field.known == .maxForwards, let maxForwards = context.admitted.maxForwards {
                    output.append(decimal: maxForwards)
                } else if field.known == .destination, let map = context.admitted.addressMap {
                    map.append(destination: bytes[field.value], to: &output)
                } else {
                    output.append(bytes[field.value])
                }
                output.append("\r\n")
            }
        }
        return takesTrailers
    }

    /// The value of TE that accepts trailers and names no coding (RFC 9110, section 10.1.4).
    private static let trailersCoding = Array("trailers".utf8)
    private static let traceparent = Array("traceparent".utf8)

    /// Writes the request's position in its trace (W3C Trace Context).
    /// - Parameter dropped: fields that the configuration sets or removes. Writes nothing if they name `traceparent`.
    private static func trace(_ span: SpanContext, _ dropped: FieldNames, to output: inout ByteBuffer) {
        guard !dropped.contains(traceparent.span) else { return }
        let text = span.traceParent.text
        output.append("traceparent: ")
        output.append(text.span)
        output.append("\r\n")
    }

    static func inject(
        _ entries: EntrySet, _ upstream: Upstream, _ token: AccessToken?, to output: inout ByteBuffer
    ) {
        let targets = upstream.rule.injection.targets
        for index in targets.indices where entries.contains(index: index) {
            guard case .field(_, let line) = targets[index],
                let value = upstream.injected.value(of: index, token)
            else { continue }
            output.append(line)
            value.withSpan { output.append($0) }
            output.append("\r\n")
        }
    }

    /// Returns the program's trailers, except those named by its Connection field or by the dropped fields, and those with
    /// a placeholder: the rest of the request is on its way already.
    static func trailers(_ context: Context) -> [(name: [UInt8], value: [UInt8])] {
        let trailers = context.stream.request.trailers
        guard !trailers.isEmpty else { return [] }
        let dropped = context.admitted.rule?.injection.dropped(context.admitted.entries) ?? FieldNames()
        let placeholders = context.installed.gate.placeholders
        return context.stream.request.with { head, bytes in
            trailers.filter { trailer in
                !head.connectionNames(trailer.name.span, in: bytes) && !dropped.contains(trailer.name.span)
                    && placeholders?.isIn(trailer.name.span) != true
                    && placeholders?.isIn(credential: trailer.value.span) != true
            }
        }
    }
}
