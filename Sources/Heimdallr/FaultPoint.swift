#if DEBUG
    internal import Cryptography
    import Glibc
    import Synchronization
#endif

/// A step after which a process may end, hang or fall behind. Debug builds can be told to do so there, so that tests meet
/// the narrow windows for certain; release builds have nothing of it.
///
///     HEIMDALLR_FAULT_POINT=after-commit:kill
///     HEIMDALLR_FAULT_POINT=lease-got/billing:stop:3,token-answered:pause=1.5
///
/// NAME, perhaps /CLIENT; then what happens: `kill` and `stop` send the process SIGKILL or SIGSTOP, `pause=SECONDS` waits,
/// `pause` alone 5 s. A number says which time, 1 when there is none. A line on standard error, `fault point NAME`, says
/// that it is there.
package enum FaultPoint: String, Sendable, CaseIterable {
    case leaseGot = "lease-got"
    /// The token request goes out now.
    case tokenAsked = "token-asked"
    /// The token endpoint's answer is there, and nothing was done with it.
    case tokenAnswered = "token-answered"
    case beforeUpdate = "before-update"
    /// Durable, and not yet used.
    case afterCommit = "after-commit"

    /// Performs the fault, on a thread that may block.
    package func reach(_ client: String) {
        #if DEBUG
            if let seconds = FaultPlan.shared.strike(self, client) { usleep(UInt32(seconds * 1_000_000)) }
        #endif
    }

    /// The same in a task.
    package func reach(_ client: String) async {
        #if DEBUG
            if let seconds = FaultPlan.shared.strike(self, client) { try? await Task.sleep(for: .seconds(seconds)) }
        #endif
    }
}

#if DEBUG
    /// The value of HEIMDALLR_FAULT_POINT.
    struct FaultPlan: Equatable {
        enum Action: Equatable {
            case kill, stop
            case pause(Double)
        }

        struct Fault: Equatable {
            var point: FaultPoint
            /// `nil`: any.
            var client: String?
            var action: Action
            /// How many times the step is still passed without harm.
            var passes: Int
        }

        var faults: [Fault]

        static let shared = SharedFaultPlan()

        /// Ignores unknown text: only tests use it, and they notice when nothing happens.
        init(_ text: String) {
            faults = text.split(separator: ",").compactMap { entry in
                let parts = entry.split(separator: ":").map(String.init)
                let name = (parts.first ?? "").split(separator: "/", maxSplits: 1).map(String.init)
                guard parts.count >= 2, let point = name.first.flatMap(FaultPoint.init),
                    let action = Action(parts[1])
                else { return nil }
                let time = parts.count > 2 ? Int(parts[2]) ?? 1 : 1
                return Fault(
                    point: point, client: name.count > 1 ? name[1] : nil, action: action, passes: max(time, 1) - 1)
            }
        }

        mutating func next(_ point: FaultPoint, _ client: String) -> Action? {
            var struck: Action?
            for index in faults.indices
            where faults[index].point == point && (faults[index].client ?? client) == client {
                if faults[index].passes == 0, struck == nil { struck = faults[index].action }
                faults[index].passes -= 1
            }
            return struck
        }
    }

    extension FaultPlan.Action {
        init?(_ text: String) {
            switch text {
            case "kill": self = .kill
            case "stop": self = .stop
            case "pause": self = .pause(5)
            default:
                guard text.hasPrefix("pause="), let seconds = Double(text.dropFirst(6)), (0...600).contains(seconds)
                else { return nil }
                self = .pause(seconds)
            }
        }
    }

    final class SharedFaultPlan: Sendable {
        private let plan = Mutex(FaultPlan(EnvironmentVariable.value("HEIMDALLR_FAULT_POINT") ?? ""))

        /// - Returns: for how many seconds to wait.
        func strike(_ point: FaultPoint, _ client: String) -> Double? {
            guard let action = plan.withLock({ $0.next(point, client) }) else { return nil }
            DebugLine.say("fault point \(point.rawValue)\n")
            switch action {
            case .kill: kill(getpid(), SIGKILL)
            case .stop:
                kill(getpid(), SIGSTOP)
                // Another thread may have taken the signal: this one goes no further before it stops.
                usleep(50_000)
            case .pause(let seconds): return seconds
            }
            return nil
        }
    }
#endif
