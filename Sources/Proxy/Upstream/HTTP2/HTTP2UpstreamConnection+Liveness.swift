import CurlTransport
import HTTP2
import Reactor

/// Times that decide when a silent connection counts as dead.
struct HTTP2Liveness {
    /// Age from which a cancelled request without an answer makes the connection doubtful.
    var doubtAfter = Duration.seconds(1)
    /// Silence after which a connection with requests sends a PING. gRPC servers allow one PING in five minutes.
    var pingAfter = Duration.seconds(330)
    var pongWithin = Duration.seconds(20)
    /// Silence after which an idle connection sends a PING before its next request. The answer to this request resets
    /// the server's count of PINGs.
    var probeAfter = Duration.seconds(60)
    /// Time for the answer to that PING. At most half of `connect_timeout`, because a dial may follow.
    var probeWithin = Duration.seconds(2)
}

// Detection of a server or network that disappeared without closing the connection.
extension HTTP2UpstreamConnection {
    /// Whether a request may begin on this connection. After a long silence of an idle connection, sends a PING and
    /// returns `false`: a request that gets no answer can't be replayed, because the server may have processed it.
    func isAlive(_ session: HTTP2Session) -> Bool {
        guard exchanges.isEmpty, loop.now >= notes.heard + origin.liveness.probeAfter else { return true }
        ask(session)
        return false
    }

    /// Notes a request that ended without an answer. If the request began at least `doubtAfter` ago and the server has
    /// sent nothing since then, the connection may be dead and takes no further request.
    func gotNoAnswer(since opened: LoopTime) {
        guard carrier != nil, notes.heard <= opened, loop.now >= opened + origin.liveness.doubtAfter else { return }
        notes.isDoubtful = true
    }

    /// Lets the requests that may be replayed use another connection.
    func carrierIsSilent(_ carrier: Carrier) {
        notes.isDoubtful = true
        let error = TransportError(.connectionLost, message: "the server acknowledged nothing of the request")
        for exchange in exchanges.values.filter(\.mayMove) { exchange.tell(error) }
    }

    /// Whether a PING checks the connection before its next request.
    var isProbed: Bool { notes.awaitsPong && exchanges.isEmpty }

    private func ask(_ session: HTTP2Session) {
        notes.awaitsPong = true
        notes.heard = loop.now
        try? session.ping(1)
        scheduleFlush()
        setTimer()
    }

    /// Handles the server's answer to a PING.
    func answered() {
        notes.awaitsPong = false
        setTimer()
        serveOthers()
    }

    /// End of the time that the connection may stay silent.
    private var silentUntil: LoopTime {
        let liveness = origin.liveness
        guard notes.awaitsPong else { return notes.heard + liveness.pingAfter }
        return notes.heard + (exchanges.isEmpty ? liveness.probeWithin : liveness.pongWithin)
    }

    func setTimer() {
        guard let carrier else { return }
        timer?.schedule(at: exchanges.isEmpty && !notes.awaitsPong ? carrier.youngUntil : silentUntil)
    }

    func timePassed() {
        guard let session, !exchanges.isEmpty || notes.awaitsPong else { return restIfIdle() }
        guard loop.now >= silentUntil else { return setTimer() }
        if notes.awaitsPong {
            return lost(TransportError(.connectionLost, message: "the server does not answer a PING"))
        }
        ask(session)
    }
}
