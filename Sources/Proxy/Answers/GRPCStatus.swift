import HTTPMessage
import WireText

/// Status codes of gRPC (grpc/grpc, doc/statuscodes.md) that the proxy itself answers with or acts on.
enum GRPCStatus: Int {
    case ok = 0
    case cancelled = 1
    case deadlineExceeded = 4
    case permissionDenied = 7
    case resourceExhausted = 8
    case `internal` = 13
    case unavailable = 14
    case unauthenticated = 16

    /// The highest code of gRPC.
    static let last = 16

    /// Name of the field, in a head without a body or in trailers.
    static let field = Array("grpc-status".utf8)

    /// Reads the field's value.
    static func read(_ value: Span<UInt8>) -> Int? {
        guard (1...2).contains(value.count) else { return nil }
        var code = 0
        for index in value.indices {
            guard ASCII.isDigit(value[index]) else { return nil }
            code = code * 10 + Int(value[index] - ASCII.zero)
        }
        return code <= last ? code : nil
    }

    /// The status in an answer's head: the answer then has no body ("trailers-only").
    static func read(_ answer: borrowing ResponseHead) -> Int? {
        let line = answer.bytes
        let bytes = line.span
        for field in answer.fields where bytes[field.name].namesField(GRPCStatus.field) {
            return read(bytes[field.value])
        }
        return nil
    }

    static func read(_ trailers: [(name: [UInt8], value: [UInt8])]) -> Int? {
        for trailer in trailers where trailer.name.span.namesField(field) { return read(trailer.value.span) }
        return nil
    }

    /// Whether a request with this content type is one of gRPC (grpc/grpc, doc/PROTOCOL-HTTP2.md). gRPC-Web is not: it has
    /// another framing, for HTTP/1.1.
    static func isContentType(_ value: Span<UInt8>) -> Bool {
        guard value.count >= contentType.count,
            value.extracting(0..<contentType.count).equalsIgnoringCase(contentType)
        else { return false }
        guard value.count > contentType.count else { return true }
        return [ASCII.space, UInt8(ascii: "+"), UInt8(ascii: ";")].contains(value[contentType.count])
    }

    static let contentType = Array("application/grpc".utf8)
}

extension Problem {
    /// The status for callers that speak gRPC.
    var grpcStatus: GRPCStatus {
        switch word {
        case .connectRefused, .tunnelNotListed, .noUpstream, .notCovered, .notForCaller, .foreignHost, .webPage,
            .ownCredential, .methodOverride, .pathOverride, .destinationNotCovered, .addressDenied, .otherAuthority:
            .permissionDenied
        case .userRequired, .loginNeeded, .callerTokenNeeded, .callerTokenRefused, .tokensRefused: .unauthenticated
        case .noCredential, .stopping, .clientRefused, .noToken, .dns, .connectionRefused, .unreachable,
            .connectionTimeout, .tls, .tlsCertificate, .tlsConfiguration, .nextProxy, .connectionLost, .responseCut:
            .unavailable
        case .slowRequest, .responseTimeout: .deadlineExceeded
        case .bodyTooLarge, .bodyNotSignable, .tooManyCallers, .connectionLimit: .resourceExhausted
        case .bodyCut: .cancelled
        case .malformedRequest, .schemeNotSupported, .hostMissing, .ambiguousPath, .wholeServer, .noQuery,
            .signedChunks, .bytesBeforeUpgrade, .loop, .circle, .internal, .malformedResponse, .unaskedUpgrade,
            .expectationFailed:
            .internal
        }
    }

    /// Title, remedy and sign-in address for `grpc-message`.
    var grpcMessage: [UInt8] {
        var text = "\(title). \(detail)"
        if let loginURL, !detail.contains(loginURL) { text += " \(loginURL)" }
        return Array(PercentEncoding.grpcMessage.encode(text).utf8)
    }
}
