import CurlTransport
import HTTP2
import Reactor

/// Times after which a silent connection has to show that it is alive.
struct HTTP2Liveness {
    /// Minimum time without an answer after which a cancelled request puts the connection in doubt.
    var doubtAfter = Duration.seconds(1)
    /// Silence of a connection with requests. Servers of gRPC refuse a PING more often than every five minutes.
    var pingAfter = Duration.seconds(330)
    var pongWithin = Duration.seconds(20)
    /// Silence of a connection without requests, before the next one begins on it. The server's answer to that request
    /// resets its count of PINGs.
    var probeAfter = Duration.seconds(60)
    /// At most half of `connect_timeout`: a dial may follow.
    var probeWithin = Duration.seconds(2)
}

// A server or a network that went away without a word.
extension HTTP2Connection {
    /// Whether a request may begin on it. After a long silence a PING asks first, because a request without any answer may
    /// have been processed.
    func isAlive(_ session: HTTP2Session) -> Bool {
        guard exchanges.isEmpty, loop.now >= marks.heard + origin.liveness.probeAfter else { return true }
        ask(session)
        return false
    }

    /// Notes a request that ended without an answer. If the server sent nothing in that time, the connection may be dead, and
    /// serves no further request.
    func gotNoAnswer(since opened: LoopTime) {
        guard carrier != nil, marks.heard <= opened, loop.now >= opened + origin.liveness.doubtAfter else { return }
        marks.isDoubtful = true
    }

    /// Whether requests wait for the answer to its PING.
    var isProbed: Bool { marks.awaitsPong && exchanges.isEmpty }

    private func ask(_ session: HTTP2Session) {
        marks.awaitsPong = true
        marks.heard = loop.now
        try? session.ping(1)
        scheduleFlush()
        setTimer()
    }

    /// The server has answered a PING.
    func answered() {
        marks.awaitsPong = false
        setTimer()
        serveOthers()
    }

    /// End of the time that the connection may stay silent.
    private var silentUntil: LoopTime {
        let liveness = origin.liveness
        guard marks.awaitsPong else { return marks.heard + liveness.pingAfter }
        return marks.heard + (exchanges.isEmpty ? liveness.probeWithin : liveness.pongWithin)
    }

    func setTimer() {
        guard let carrier else { return }
        timer?.schedule(at: exchanges.isEmpty && !marks.awaitsPong ? carrier.youngUntil : silentUntil)
    }

    func timePassed() {
        guard let session, !exchanges.isEmpty || marks.awaitsPong else { return restIfIdle() }
        guard loop.now >= silentUntil else { return setTimer() }
        if marks.awaitsPong {
            return lost(TransportError(.connectionLost, message: "the server does not answer a PING"))
        }
        ask(session)
    }
}
