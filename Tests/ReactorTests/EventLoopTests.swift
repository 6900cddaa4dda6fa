import Reactor
import Synchronization
import TestSupport
import Testing

@Suite("an event loop runs what it is given, on its own thread", .timeLimit(.minutes(1)))
struct EventLoopTests {
    @Test func `jobs of each thread run in their order, all of them, on one thread`() async throws {
        let loop = try EventLoop.start(name: "jobs")
        defer { loop.stop() }
        let log = Recorder<(thread: Int, number: Int)>()
        let strays = Recorder<Int>()
        await withTaskGroup { group in
            for thread in 0..<8 {
                group.addTask {
                    try? await offPool {
                        for number in 0..<2000 {
                            loop.execute {
                                if !loop.isOnLoop { strays.append(number) }
                                log.append((thread, number))
                            }
                        }
                    }
                }
            }
        }
        try await eventually("all jobs") { log.all.count == 16_000 }
        #expect(strays.all == [])
        #expect(!loop.isOnLoop)
        for thread in 0..<8 {
            #expect(log.all.filter { $0.thread == thread }.map(\.number) == Array(0..<2000))
        }
    }

    @Test func `a job that a job adds runs after those that stand in the queue`() async throws {
        let loop = try EventLoop.start(name: "nested")
        defer { loop.stop() }
        let log = Recorder<String>()
        try await loop.run {
            loop.execute {
                log.append("first")
                loop.execute { log.append("third") }
            }
            loop.execute { log.append("second") }
        }
        try await eventually("three jobs") { log.all == ["first", "second", "third"] }
    }

    @Test func `a loop that waits is woken, again and again`() async throws {
        let loop = try EventLoop.start(name: "woken")
        defer { loop.stop() }
        for number in 0..<500 { #expect(try await loop.run { number } == number) }
    }

    @Test func `an error of a job that is run comes back to its caller`() async throws {
        let loop = try EventLoop.start(name: "errors")
        defer { loop.stop() }
        await #expect(throws: TestFailure.self) { try await loop.run { throw TestFailure("as expected") } }
    }

    @Test func `an actor runs on its loop`() async throws {
        let loop = try EventLoop.start(name: "actor")
        defer { loop.stop() }
        let counter = Counter(loop: loop)
        await withTaskGroup { group in
            for _ in 0..<200 {
                group.addTask { for _ in 0..<10 { await counter.increase() } }
            }
        }
        #expect(await counter.count == 2000)
        #expect(await counter.wasElsewhere == false)
    }

    @Test func `turn ends come once, after the jobs of the turn, and next turns after that`() async throws {
        let loop = try EventLoop.start(name: "turns")
        defer { loop.stop() }
        let log = Recorder<String>()
        try await loop.run {
            let handler = Turns(loop: loop, log: log)
            loop.atTurnEnd(handler)
            loop.atNextTurn(handler)
            log.append("job")
        }
        try await eventually("a second next turn") { log.all.count == 4 }
        #expect(log.all == ["job", "turn end", "next turn 1", "next turn 2"])
    }

    // MARK: Its end

    @Test func `jobs that stand in the queue at the stop still run, later ones don't`() async throws {
        let loop = try EventLoop.start(name: "stopping")
        let log = Recorder<Int>()
        let gate = Gate()
        loop.execute { gate.wait() }
        for number in 0..<100 { loop.execute { log.append(number) } }
        loop.stop()
        gate.open()
        try await eventually("the queued jobs") { log.all.count == 100 }
        #expect(log.all == Array(0..<100))
        // A late job is dropped with its references.
        let late = Recorder<Int>()
        try await eventually("the loop is over") {
            loop.execute { [canary = Canary(log: late)] in withExtendedLifetime(canary) {} }
            return late.all.count >= 2
        }
    }

    @Test func `a loop that ends lets go of handlers, jobs and itself`() async throws {
        let log = Recorder<Int>()
        let gone: Gone
        do {
            let loop = try EventLoop.start(name: "leaving")
            gone = Gone(loop: loop)
            try await loop.run {
                let pair = try Pair()
                try loop.register(pair.near, handler: Watcher { _ in withExtendedLifetime(loop) {} })
                pair.keep()
                let canary = Canary(log: log)
                LoopTimer(on: loop) { _ = canary }.schedule(after: .seconds(3600))
            }
            loop.stop()
        }
        try await eventually("the loop is freed") { gone.loop == nil }
        #expect(log.all == [-1])
    }

    @Test func `an object bound to a loop is freed there, whoever lets go of it, or after its end`() async throws {
        let loop = try EventLoop.start(name: "bound")
        let log = Recorder<Bool>()
        for _ in 0..<100 {
            let bound = try await loop.run { LoopBound(Freed { log.append(loop.isOnLoop) }, on: loop) }
            try await offPool { _ = bound }
        }
        try await eventually("a hundred freed") { log.all.count == 100 }
        #expect(log.all.allSatisfy { $0 })
        let late = Mutex<LoopBound<Freed>?>(nil)
        let made = try await loop.run { LoopBound(Freed { log.append(true) }, on: loop) }
        late.withLock { $0 = made }
        loop.stop()
        try await eventually("the late one is freed") {
            late.withLock { $0 = nil }
            return true
        }
    }

    // MARK: Descriptors

    @Test func `readiness is told on the loop, once a change`() async throws {
        let loop = try EventLoop.start(name: "ready")
        defer { loop.stop() }
        let log = Recorder<Readiness>()
        let pair = try Pair()
        try await loop.run { try loop.register(pair.near, handler: Watcher { log.append($0) }) }
        try await eventually("writable at once") { log.all.first?.contains(.writable) == true }
        pair.write("x")
        try await eventually("readable") { log.all.last?.contains(.readable) == true }
        let told = log.all.count
        for _ in 0..<20 { _ = try await loop.run { 0 } }
        #expect(log.all.count == told)
        pair.write("y")
        try await eventually("readable again") { log.all.count > told }
        pair.closeFar()
        try await eventually("the peer has closed") { log.all.last?.contains(.peerClosed) == true }
        try await loop.run { loop.unregister(pair.near) }
    }

    @Test func `a late event of a closed descriptor is not told to its successor`() async throws {
        let loop = try EventLoop.start(name: "reuse")
        defer { loop.stop() }
        let strays = Recorder<String>()
        let pairs = try (0..<50).map { _ in try Pair() }
        let told = Recorder<Int>()
        try await loop.run {
            for (index, pair) in pairs.enumerated() {
                try loop.register(
                    pair.near,
                    handler: Watcher { readiness in
                        guard readiness.contains(.readable) else { return }
                        told.append(index)
                        // The first to be told closes all others; their events stand in the same batch.
                        guard told.all.count == 1 else { return strays.append("told to \(index)") }
                        for (other, pair) in pairs.enumerated() where other != index {
                            loop.unregister(pair.near)
                            pair.closeNear()
                        }
                        // The kernel gives the same numbers out again.
                        for _ in 0..<49 {
                            guard let pair = try? Pair() else { return strays.append("no pair") }
                            pair.keep()
                            try? loop.register(
                                pair.near,
                                handler: Watcher { readiness in
                                    if readiness.contains(.readable) { strays.append("told to a successor") }
                                })
                        }
                    })
            }
        }
        // Let the loop sleep in between, so that all events come in one batch.
        let gate = Gate()
        loop.execute { gate.wait() }
        for pair in pairs { pair.write("x") }
        gate.open()
        try await eventually("an event") { !told.all.isEmpty }
        for _ in 0..<10 { _ = try await loop.run { 0 } }
        #expect(strays.all == [])
        #expect(told.all.count == 1)
    }

    @Test func `a descriptor that is registered anew tells its new handler alone, also what had come before`()
        async throws
    {
        let loop = try EventLoop.start(name: "anew")
        defer { loop.stop() }
        let (former, next) = (Recorder<Int>(), Recorder<Int>())
        let pairs = try (0..<20).map { _ in try Pair() }
        try await loop.run {
            for (index, pair) in pairs.enumerated() {
                try loop.register(
                    pair.near,
                    handler: Watcher { readiness in
                        guard readiness.contains(.readable) else { return }
                        former.append(index)
                        // The events of the others stand in the same batch.
                        for (other, pair) in pairs.enumerated() where former.all.count == 1 {
                            try? loop.change(
                                pair.near, to: Watcher { if $0.contains(.readable) { next.append(other) } })
                        }
                    })
            }
        }
        let gate = Gate()
        loop.execute { gate.wait() }
        for pair in pairs { pair.write("x") }
        gate.open()
        try await eventually("the new handlers") { Set(next.all) == Set(pairs.indices) }
        for _ in 0..<10 { _ = try await loop.run { 0 } }
        #expect(former.all.count == 1)
        #expect(next.all.count == pairs.count)
    }

    @Test func `a handler is held until it is unregistered`() async throws {
        let loop = try EventLoop.start(name: "held")
        defer { loop.stop() }
        let log = Recorder<Int>()
        let pair = try Pair()
        try await loop.run {
            let canary = Canary(log: log)
            try loop.register(pair.near, handler: Watcher { _ in _ = canary })
        }
        #expect(log.all == [])
        try await loop.run {
            loop.unregister(pair.near)
            loop.unregister(pair.near)
        }
        #expect(log.all == [-1])
        await #expect(throws: SystemError.self) {
            try await loop.run { try loop.register(9999, handler: Watcher { _ in }) }
        }
    }
}

private struct Gone: Sendable { weak let loop: EventLoop? }

private actor Counter {
    private nonisolated let loop: EventLoop
    private(set) var count = 0
    private(set) var wasElsewhere = false

    nonisolated var unownedExecutor: UnownedSerialExecutor { unsafe loop.asUnownedSerialExecutor() }

    init(loop: EventLoop) { self.loop = loop }

    func increase() {
        if !loop.isOnLoop { wasElsewhere = true }
        count += 1
    }
}

private final class Turns: TurnEndHandler, NextTurnHandler {
    private let loop: EventLoop
    private let log: Recorder<String>
    private var count = 0

    init(loop: EventLoop, log: Recorder<String>) {
        self.loop = loop
        self.log = log
    }

    func turnEnded() { log.append("turn end") }

    func nextTurn() {
        count += 1
        log.append("next turn \(count)")
        if count == 1 { loop.atNextTurn(self) }
    }
}
