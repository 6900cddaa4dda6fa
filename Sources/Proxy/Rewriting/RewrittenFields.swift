import HTTPMessage
import Reactor

/// Fields of answers that hold addresses.
enum RewrittenFields {
    /// Bits of these fields. `Field.known` has a bit, too, so each field of a head is checked by one operation.
    static let ofAnswers =
        KnownField.location.bit | KnownField.contentLocation.bit | KnownField.setCookie.bit | KnownField.altSvc.bit

    static func isIn(_ answer: borrowing ResponseHead) -> Bool {
        answer.fields.contains { ofAnswers & $0.known.bit != 0 }
    }

    /// Writes the line of such a field. Drops Alt-Svc, which would make the program bypass the proxy (RFC 7838).
    static func append(_ field: Field, of bytes: Span<UInt8>, _ map: AddressMap, to output: inout ByteBuffer) {
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
