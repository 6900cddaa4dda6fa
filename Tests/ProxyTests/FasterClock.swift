import Heimdallr

extension HeimdallrClock {
    /// Time that passes faster, for rules that wait for seconds.
    static func faster(by factor: Int) -> HeimdallrClock {
        let begin = ContinuousClock.now
        var clock = HeimdallrClock.system
        clock.now = { begin + (.now - begin) * factor }
        clock.sleep = { try await Task.sleep(until: begin + ($0 - begin) / factor, clock: .continuous) }
        return clock
    }
}
