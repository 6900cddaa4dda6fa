import Reactor
import Synchronization
import TestSupport
import Testing

@Suite("nobody holds the loop by asking for more", .timeLimit(.minutes(1)))
struct TurnTests {
    /// Registers again each time, in the way it is told.
    private final class Insatiable: TurnEndHandler, NextTurnHandler {
        private let again: (Insatiable) -> Void
        var isOver = false
        init(_ again: @escaping (Insatiable) -> Void) { self.again = again }
        func turnEnded() { if !isOver { again(self) } }
        func nextTurn() { if !isOver { again(self) } }
    }

    @Test(arguments: ["turn end", "next turn", "timer", "job"])
    func `a job that always wants another turn leaves turns to others`(way: String) async throws {
        let loop = try EventLoop.start(name: "greedy")
        let kept = Mutex<[LoopBound<Insatiable>]>([])
        let timers = Mutex<[LoopBound<LoopTimer>]>([])
        try await loop.run {
            let handler = Insatiable { way == "turn end" ? loop.atTurnEnd($0) : loop.atNextTurn($0) }
            kept.withLock { $0.append(LoopBound(handler, on: loop)) }
            switch way {
            case "turn end": loop.atTurnEnd(handler)
            case "next turn": loop.atNextTurn(handler)
            case "timer":
                let box = Box()
                let timer = LoopTimer(on: loop) { if !handler.isOver { box.timer?.schedule(at: loop.now) } }
                box.timer = timer
                timers.withLock { $0.append(LoopBound(timer, on: loop)) }
                timer.schedule(at: loop.now)
            default:
                let me = LoopBound(handler, on: loop)
                Self.post(me, loop)
            }
        }
        for _ in 0..<20 {
            let fired = Mutex(false)
            try await loop.run {
                let timer = LoopTimer(on: loop) { fired.withLock { $0 = true } }
                timer.schedule(after: .milliseconds(1))
                timers.withLock { $0.append(LoopBound(timer, on: loop)) }
            }
            try await eventually("a timer", within: .seconds(2)) { fired.withLock { $0 } }
        }
        let handlers = kept.withLock { $0 }
        try await loop.run { for handler in handlers { handler.value.isOver = true } }
        timers.withLock { $0 = [] }
        loop.stop()
    }

    private final class Box { weak var timer: LoopTimer? }

    private static func post(_ me: LoopBound<Insatiable>, _ loop: EventLoop) {
        loop.execute { if !me.value.isOver { post(me, loop) } }
    }
}
