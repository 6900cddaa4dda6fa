import CurlTransport
import HTTPMessage
import Reactor

// Trailers stay trailers, in both directions; `TrailerRules` has dropped what must not be one.
extension ClientConnection {
    /// Those of a chunked answer, which is over.
    /// - Returns: false when its end was not there.
    func takeDecodedTrailers() -> Bool {
        guard answerDecoder.isEnded else { return false }
        for (name, value) in answerDecoder.trailers where !answer.connectionNames(name.span) {
            trailers.append(name)
            trailers.append(": ")
            trailers.append(value)
            trailers.append("\r\n")
        }
        return true
    }

    /// What `Connection` names stops here, and nothing stands in for the token.
    func requestTrailers(_ transfer: Transfer) -> [(name: [UInt8], value: [UInt8])] {
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
