import Reactor

/// Passes bytes between a program and its target until both have ended, or one has failed. The end of one side is
/// passed on, and the other direction continues. Loop's thread only.
final class Tunnel: ReadinessHandler, NextTurnHandler {
    private let program: TunnelSide
    private let target: TunnelSide
    let toTarget: TunnelFlow
    let toProgram: TunnelFlow
    private let loop: EventLoop
    private let progressed: () -> Void
    /// Called once at the end. The callback closes the program's stream, or cuts it if the argument is true.
    private var ended: ((Bool) -> Void)?
    /// Direction from the side that has failed. Its last bytes still pass; nothing passes in the other direction.
    private var last: TunnelFlow?
    private var isScheduled = false

    init(
        program: TunnelSide, target: TunnelSide, loop: EventLoop, progressed: @escaping () -> Void,
        ended: @escaping (Bool) -> Void
    ) {
        self.program = program
        self.target = target
        toTarget = TunnelFlow(from: program, to: target)
        toProgram = TunnelFlow(from: target, to: program)
        self.loop = loop
        self.progressed = progressed
        self.ended = ended
    }

    func programReady(_ readiness: Readiness) { note(readiness, program) }

    func ready(_ readiness: Readiness) { note(readiness, target) }

    private func note(_ readiness: Readiness, _ side: TunnelSide) {
        guard ended != nil else { return }
        side.note(readiness)
        // After a reset, the other side is not read to its end.
        if readiness.contains(.error) { fail(side) } else { pump() }
    }

    func nextTurn() {
        isScheduled = false
        pump()
    }

    /// Moves bytes in both directions, up to a limit in each turn.
    func pump() {
        guard ended != nil else { return }
        if let last { return finish(last) }
        var scratch = ByteBuffer(capacity: TunnelFlow.piece)
        var isUnfinished = false
        switch toTarget.move(&scratch) {
        case .idle: break
        case .more: isUnfinished = true
        case .failed(let side): return fail(side)
        }
        switch toProgram.move(&scratch) {
        case .idle: break
        case .more: isUnfinished = true
        case .failed(let side): return fail(side)
        }
        noteProgress()
        if toTarget.isDone, toProgram.isDone { return end(cut: false) }
        if isUnfinished { goOnNextTurn() }
    }

    private func noteProgress() {
        guard toTarget.hasMoved || toProgram.hasMoved else { return }
        (toTarget.hasMoved, toProgram.hasMoved) = (false, false)
        progressed()
    }

    private func goOnNextTurn() {
        guard !isScheduled else { return }
        isScheduled = true
        loop.atNextTurn(self)
    }

    /// Sends the failed side's last bytes (RFC 9110, section 9.3.6). Then ends.
    private func fail(_ side: TunnelSide) {
        side.note(.failed)
        let flow = last ?? (side === program ? toTarget : toProgram)
        last = flow
        finish(flow)
    }

    private func finish(_ flow: TunnelFlow) {
        var scratch = ByteBuffer(capacity: TunnelFlow.piece)
        let step = flow.move(&scratch)
        noteProgress()
        switch step {
        case .more: goOnNextTurn()
        // The program still has to take bytes. Those of a program that was reset do not wait for the target.
        case .idle where flow === toProgram && !flow.isDone: break
        case .idle, .failed: end(cut: true)
        }
    }

    /// Ends the tunnel. A cut tunnel resets its connections, because a cut must not look like an orderly end. A
    /// connection is not reset if that would destroy unacknowledged bytes.
    func end(cut: Bool) {
        guard let ended else { return }
        self.ended = nil
        if cut {
            for side in [program, target] where side.stream.unacknowledged <= 0 { side.stream.resetOnClose() }
        }
        target.stream.close()
        ended(cut && last !== toTarget)
    }
}
