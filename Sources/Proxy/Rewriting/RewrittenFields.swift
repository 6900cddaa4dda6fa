import HTTPMessage
import Reactor

/// The fields of messages that hold addresses.
enum RewrittenFields {
    /// Found while the head is parsed, so that an answer without any of them costs nothing.
    static let ofAnswers =
        KnownField.location.bit | KnownField.contentLocation.bit | KnownField.setCookie.bit | KnownField.altSvc.bit

    static func isIn(_ answer: borrowing ResponseHead) -> Bool {
        answer.fields.contains { ofAnswers & $0.known.bit != 0 }
    }

    /// Writes one of `ofAnswers` as a line.
    static func append(_ field: Field, of bytes: Span<UInt8>, _ map: AddressMap, to output: inout ByteBuffer) {
        // Alt-Svc would lead around the proxy (RFC 7838).
        if field.known == .altSvc { return }
        output.append(bytes[field.name])
        output.append(": ")
        if field.known == .setCookie {
            map.append(cookie: bytes[field.value], to: &output)
        } else {
            map.append(reference: bytes[field.value], to: &output)
        }
        output.append("\r\n")
    }
}
