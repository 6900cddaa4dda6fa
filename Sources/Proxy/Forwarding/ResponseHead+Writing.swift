import HTTPMessage
import Reactor

extension ResponseHead {
    /// Writes the status line and the end-to-end fields, without the blank line.
    /// - Parameter map: evaluated only for a field with addresses.
    func write(to output: inout ByteBuffer, _ map: @autoclosure () -> AddressMap?) {
        let bytes = self.bytes.span
        output.append("HTTP/1.1 ")
        output.append(decimal: UInt64(status))
        output.append(byte: UInt8(ascii: " "))
        output.append(bytes[reason])
        output.append("\r\n")
        for field in fields where !field.isHopByHop {
            if RewrittenFields.ofAnswers & field.known.bit != 0, let map = map() {
                RewrittenFields.append(field, of: bytes, map, to: &output)
                continue
            }
            output.append(field: bytes[field.name], bytes[field.value])
        }
    }
}
