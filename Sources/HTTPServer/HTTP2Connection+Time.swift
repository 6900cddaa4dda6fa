import HTTP2
import Reactor

// Deadlines of an HTTP/2 connection and its streams, and its end in order.
extension HTTP2Connection {
    func noteStall() {
        guard !owner.output.isEmpty else { return stall = nil }
        let settings = owner.server.settings
        guard let timeout = (settings.stallTimeout ?? settings.idleTimeout).nanoseconds else { return }
        stall = (owner.now.advanced(by: timeout), owner.stream.unacknowledged)
        noteDeadline(owner.now.advanced(by: timeout))
    }

    func becomeQuiet() {
        quietSince = owner.now
        if let nanoseconds = owner.server.settings.idleTimeout.nanoseconds {
            noteDeadline(quietSince.advanced(by: nanoseconds))
        }
    }

    var isQuiet: Bool { streams.isEmpty && owner.output.isEmpty }

    func noteDeadline(_ time: LoopTime) {
        if time < owner.deadline.time { owner.setDeadline(.handler, at: time) }
    }

    func deadlinePassed() { sweep() }

    /// Looks at the deadlines of all streams, and at the connection's own.
    private func sweep() {
        let now = owner.now
        if let stall, stall.deadline <= now {
            guard owner.stream.unacknowledged < stall.unacknowledged else {
                owner.stream.resetOnClose()
                return owner.leave(.cutOff)
            }
            noteStall()
        }
        for stream in Array(streams.values) where stream.deadline.time <= now { stream.deadlinePassed() }
        guard owner.phase == .http2 else { return }
        var next = streams.values.map(\.deadline.time).min() ?? ConnectionDeadline.never
        if streams.isEmpty, let idle = owner.server.settings.idleTimeout.nanoseconds {
            next = quietSince.advanced(by: idle)
            if next <= now { return closeIdle() }
        }
        if let stall { next = min(next, stall.deadline) }
        if next < owner.deadline.time { owner.setDeadline(.handler, at: next) }
    }

    /// Ends the connection between two requests.
    func closeIdle() {
        perform { session throws(HTTP2Error) in try session.goAway(.noError) }
    }

    /// Finishes the open streams, and takes no more. The client learns it first; once its answer to a ping shows that,
    /// the last number is named (section 6.8).
    func drain() {
        guard !isDraining else { return }
        isDraining = true
        perform { session throws(HTTP2Error) in
            try session.announceEnd()
            try session.ping(0)
        }
    }

    func lastGoAway() {
        guard isDraining else { return }
        perform { session throws(HTTP2Error) in try session.goAway(.noError) }
    }
}
