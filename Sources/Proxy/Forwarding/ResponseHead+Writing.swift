import HTTPMessage
import HTTPServer
import Reactor

extension ResponseHead {
    /// Writes the end-to-end fields.
    /// - Parameter map: rewrites the upstream's addresses.
    func writeFields(to output: inout ByteBuffer, _ map: AddressMap?) {
        let bytes = self.bytes.span
        for field in fields where !field.isHopByHop {
            if RewrittenFields.ofAnswers & field.known.bit != 0, let map {
                RewrittenFields.append(field, of: bytes, map, to: &output)
                continue
            }
            output.append(field: bytes[field.name], bytes[field.value])
        }
    }
}
