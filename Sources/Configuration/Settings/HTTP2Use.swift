/// Use of HTTP/2 with a server.
public enum HTTP2Use: Sendable, Equatable {
    /// HTTP/2 only for gRPC calls.
    case calls
    case never
    /// HTTP/2 over https, if the server agrees (ALPN).
    case offered
    /// Always HTTP/2, with prior knowledge.
    case known

    /// Reads the value of a key `http2`.
    init(text: String) throws(BadValue) {
        if text == "prior-knowledge" {
            self = .known
        } else if let isOffered = try? Grammar.boolean(text) {
            self = isOffered ? .offered : .never
        } else {
            throw BadValue("write true, false or prior-knowledge", fits: .words(["true", "false", "prior-knowledge"]))
        }
    }
}
