import Reactor
import WireText

/// The Date field of the server's own answers (RFC 9110, section 6.6.1), rebuilt once a second. Loop's thread only.
struct DateField {
    private var second = Int.min
    private var line: [UInt8] = []

    mutating func append(to output: inout ByteBuffer) {
        let now = WallTime.now.seconds
        if now != second {
            second = now
            line = Array("Date: \(HTTPDate.text(now))\r\n".utf8)
        }
        output.append(line)
    }
}
