import CurlTransport
import HTTP2

extension HTTP2Closing {
    /// Error of an answer that this end cuts.
    var error: TransportError {
        code == .protocolError && !isReset
            ? TransportError(.responseMalformed, message: "the answer breaks the rules of HTTP/2")
            : TransportError(.connectionLost, message: "the stream was reset, with code \(code.rawValue)")
    }
}
