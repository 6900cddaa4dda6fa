import Heimdallr

// An operator who takes the records to the other store with `heimdallr-proxy store move`.
extension World {
    /// Whether `store move` sees a proxy on the database: each has a connection with a lock.
    var isDatabaseInUse: Bool { replicas.contains { !$0.process.usesFiles && $0.process.hasConnection } }

    /// - Parameters:
    ///   - running: a proxy that is not stopped first: wrong use.
    ///   - life: time after which the command is killed, if it still runs; the operator then repeats it.
    func move(running: Int?, killedAfter life: Duration?) {
        guard !isMoving else { return }
        isMoving = true
        Task {
            for replica in replicas where replica.number != running { try await replica.halt() }
            var (running, left, attempts, refusals) = (running.map { replicas[$0] }, life, 0, 0)
            while true {
                attempts += 1
                do {
                    try await moveOnce(Process(Process.mover, attempts, self, usesFiles: !usesFiles), killedAfter: left)
                    break
                } catch let error as TokenStoreError where "\(error)".contains("a proxy runs on") {
                    log("the move is refused")
                    try await running?.halt()
                    running = nil
                    // A task of a dead process may still hold its lock.
                    refusals += 1
                    if refusals > 9 { fail("a move is refused, and no proxy runs") }
                } catch {
                    log("the move is not finished: \(error)")
                    left = nil
                    // Somebody starts a proxy too early, and stops it again.
                    if running == nil, Scheduler.shared.chance.once(in: 3) {
                        replicas[0].release(usesFiles: usesFiles)
                        try await pause(1...5000)
                        try await replicas[0].halt()
                    }
                }
                guard !hasEnded, attempts < 300 else { return fail("the move is never finished") }
                try await pause(500...3000)
            }
            log("the records are moved")
            usesFiles.toggle()
            // A proxy with the former configuration: it does not start, or spends nothing.
            if running == nil, Scheduler.shared.chance.once(in: 2) { replicas[0].release(usesFiles: !usesFiles) }
            for replica in replicas where replica.isHalted { replica.release(usesFiles: usesFiles) }
            try await pause(100...15_000)
            for replica in replicas where replica.process.usesFiles != usesFiles {
                try await replica.halt()
                replica.release(usesFiles: usesFiles)
            }
            (isMoving, calmSince) = (false, max(calmSince ?? now, now))
        }
    }

    /// The command: one process.
    private func moveOnce(_ process: Process, killedAfter life: Duration?) async throws {
        mover = process
        defer { process.die() }
        if let life { Scheduler.shared.after(life) { process.die() } }
        let (source, target) = (
            SimulatedStore(process, isInFiles: usesFiles), SimulatedStore(process, isInFiles: !usesFiles)
        )
        try await source.prepareMove(alone: true)
        try await target.prepareMove(alone: false)
        try await StoreMove(source, target, clients: (0..<plan.clients).map(Replica.name)).run { log("move: \($0)") }
    }
}
