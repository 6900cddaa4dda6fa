import HTTP2
import Reactor

// The stream's part of its connection's allowance.
extension HTTP2ProgramStream {
    /// Changes the stream's part of the connection's allowance.
    func charge(_ change: (inout HTTP2Allowance.Share) -> Void) {
        var new = share
        change(&new)
        connection.allowance.change(&share, to: new)
    }

    func keepBody(upTo limit: Int, isNeeded: Bool) {
        body.keep(upTo: limit)
        needsBody = isNeeded
    }

    /// Counts the kept bytes. If the connection keeps too many, stops keeping them, or refuses a request that needs them.
    /// - Returns: `false` if the request was refused.
    func chargeBody() -> Bool {
        guard body.kept != share.kept else { return true }
        charge { $0.kept = body.kept }
        guard !connection.allowance.keeps(share.kept) else { return true }
        guard needsBody else {
            stopKeeping()
            return true
        }
        session.refuse(id)
        _ = end()
        return false
    }

    /// Drops the bytes kept for a replay.
    func stopKeeping() {
        body.stopKeeping(server.spares)
        charge { $0.kept = body.kept }
    }

    func answerRoom() -> Int {
        guard phase == .busy else { return .max }
        let room = connection.room(for: self)
        if room == 0 { waitForRoom(true) }
        return room
    }

    func mayReadAhead() -> Bool {
        guard phase == .busy, !share.readsAhead else { return share.readsAhead }
        guard connection.allowance.readAhead < HTTP2Allowance.readAhead else { return false }
        charge { $0.readsAhead = true }
        return true
    }

    /// - Parameter isOthers: whether there is room in the stream's own buffer, but not in the connection's allowance.
    func waitForRoom(_ isOthers: Bool) {
        waits.forRoom = true
        if isOthers { connection.awaitRoom(for: self) }
        waitForProgram()
    }

    func waitForProgram() {
        unsentAtWait = session.unsent(of: id)
        setDeadline(.room, after: server.settings.outputTimeout)
    }
}
