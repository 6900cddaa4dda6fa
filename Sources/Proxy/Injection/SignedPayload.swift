import HTTPMessage
import SigV4
import WireText

/// What a signature says of a request's body: decided by the head alone.
enum SignedPayload {
    enum Verdict: Equatable {
        /// The digest, or a word that stands for none.
        case known([UInt8])
        /// All of the body has to be read first.
        case read
        case refused(Problem)
    }

    private static let field = Array("x-amz-content-sha256".utf8)
    /// The chunks of the body are not signed, only what follows them says what they add up to.
    private static let unsignedTrailer = Array("STREAMING-UNSIGNED-PAYLOAD-TRAILER".utf8)

    static func judge(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ signer: RequestSigner, isSecure: Bool
    ) -> Verdict {
        if let own = Self.own(head, bytes) {
            // Who signed with keys of no worth has named the body's digest rightly all the same.
            if own.count == 64 { return .known(own) }
            if own.starts(with: "STREAMING-AWS4-".utf8) { return .refused(.signedChunks) }
            if signer.isStorage, isSecure { return .known(own) }
        }
        switch head.framing {
        case .none, .length(0): return .known(PayloadDigest.empty)
        case .length, .chunked, .untilClose: break
        }
        // Nothing but TLS would keep such a body as it is.
        return signer.isStorage && isSecure ? .known(PayloadDigest.unsigned) : .read
    }

    /// What the program says of its body itself, where that is something that can be signed or has to be refused.
    static func own(_ head: RequestHead, _ bytes: Span<UInt8>) -> [UInt8]? {
        var found: [UInt8]?
        for field in head.fields where !field.isHopByHop && bytes[field.name].namesField(Self.field) {
            // Two can't both be right.
            guard found == nil else { return nil }
            found = [UInt8](copying: bytes[field.value])
        }
        guard let found else { return nil }
        let isDigest = found.count == 64 && found.allSatisfy { ASCII.isDigit($0) || (0x61...0x66).contains($0) }
        let isWord =
            found == PayloadDigest.unsigned || found == unsignedTrailer || found.starts(with: "STREAMING-AWS4-".utf8)
        return isDigest || isWord ? found : nil
    }
}
