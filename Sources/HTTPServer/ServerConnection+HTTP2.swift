import HTTP2
import Reactor

// A client that speaks HTTP/2.
extension ServerConnection {
    /// Turns to HTTP/2 if the client's bytes begin with its preface, which no request of HTTP/1.1 does.
    /// - Returns: whether it did.
    func turnToHTTP2() -> Bool {
        guard reader.input.buffer.withBytes({ HTTP2Connection.begins($0) }), let makeHandler = handler?.streamHandlers,
            let connection = try? HTTP2Connection(self, makeHandler: makeHandler)
        else { return false }
        handler = connection
        phase = .http2
        setDeadline(after: .off)
        connection.begin()
        return true
    }

    var http2: HTTP2Connection? { phase == .http2 ? handler as? HTTP2Connection : nil }

    /// Ends the idle connection in favour of others.
    func makeRoom() { http2 == nil ? close() : closeIdle() }

    func closeBehindHTTP2() {
        phase = .closing
        handler = nil
        if !output.isEmpty { waitForClient() }
        scheduleFlush()
    }
}
