import HTTP2

extension HTTP2ServerConnection {
    /// Cuts all streams, and ends the connection by GOAWAY.
    func cut() {
        for (id, stream) in streams {
            session.reset(id, .cancel)
            stream.leave(.cutOff)
        }
        sendLastGoAway()
    }
}
