import CurlTransport
import HTTPMessage
import Reactor

// Trailers stay trailers, in both directions; `TrailerRules` has dropped what must not be one.
extension ClientConnection {
    /// Ends the answer's body.
    func writeLastChunk(_ trailers: [(name: [UInt8], value: [UInt8])]) {
        guard !exchange.isDiscardingAnswer else { return }
        output.append("0\r\n")
        for (name, value) in trailers {
            output.append(name)
            output.append(": ")
            output.append(value)
            output.append("\r\n")
        }
        output.append("\r\n")
    }

    /// What `Connection` names stops here, and nothing stands in for the token.
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])] {
        let trailers = body.trailers
        guard !trailers.isEmpty else { return [] }
        let ours = token == nil ? [] : upstream?.injectedField ?? []
        return headBytes.withBytes { bytes in
            trailers.filter { trailer in
                !head.connectionNames(trailer.name.span, in: bytes)
                    && (ours.isEmpty || !trailer.name.span.namesField(ours))
            }
        }
    }
}
