import HTTPMessage
import HTTPServer
import Reactor
import WireText

extension ResponseHead {
    /// Writes the end-to-end fields.
    /// - Parameters:
    ///   - map: map that rewrites the upstream's addresses; `nil` if they pass unchanged.
    ///   - hidesDiscovery: whether to leave `resource_metadata` out of challenges (RFC 9728, section 5.1).
    func writeFields(to output: inout ByteBuffer, _ map: AddressMap?, hidesDiscovery: Bool) {
        let bytes = self.bytes.span
        for field in fields where !field.isHopByHop {
            if RewrittenFields.ofAnswers & field.known.bit != 0, let map {
                RewrittenFields.append(field, of: bytes, map, to: &output)
                continue
            }
            if hidesDiscovery, field.known == .wwwAuthenticate {
                if let value = Challenge.removing("resource_metadata", from: [UInt8](copying: bytes[field.value])) {
                    output.append(field: bytes[field.name], Array(value.utf8).span)
                }
                continue
            }
            output.append(field: bytes[field.name], bytes[field.value])
        }
    }
}
