import HTTPMessage
import SigV4
import WireText

/// Chooses the payload value of an AWS signature by the request's head alone.
enum SignedPayload {
    enum Verdict: Equatable {
        /// The body's digest, or a constant for an unsigned body.
        case known([UInt8])
        /// The whole body has to be read first.
        case read
        case refused(Problem)
    }

    private static let field = MangledName.plain("x-amz-content-sha256")
    /// Constant for unsigned chunks whose checksum is in a trailer.
    private static let unsignedTrailer = Array("STREAMING-UNSIGNED-PAYLOAD-TRAILER".utf8)

    static func judge(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ signer: RequestSigner, isSecure: Bool
    ) -> Verdict {
        if let own = Self.own(head, bytes) {
            // The digest does not depend on keys, so it is right even if the program has placeholders for keys.
            if own.count == 64 { return .known(own) }
            if own.starts(with: "STREAMING-AWS4-".utf8) { return .refused(Problem(.signedChunks)) }
            if signer.isStorage, isSecure { return .known(own) }
        }
        switch head.framing {
        case .none, .length(0): return .known(PayloadDigest.empty)
        case .length, .chunked, .untilClose: break
        }
        // Without TLS, an unsigned body could be changed on the way.
        return signer.isStorage && isSecure ? .known(PayloadDigest.unsigned) : .read
    }

    /// Returns the program's payload value, if it is a digest or a known constant; else `nil`.
    static func own(_ head: RequestHead, _ bytes: Span<UInt8>) -> [UInt8]? {
        let value = head.fields.value(ofOnly: { !$0.isHopByHop && bytes[$0.name].mayName(field: Self.field) })
        guard let found = value.map({ [UInt8](copying: bytes[$0]) }) else { return nil }
        let isDigest = found.count == 64 && found.allSatisfy { ASCII.isDigit($0) || (0x61...0x66).contains($0) }
        let isWord =
            found == PayloadDigest.unsigned || found == unsignedTrailer || found.starts(with: "STREAMING-AWS4-".utf8)
        return isDigest || isWord ? found : nil
    }
}
