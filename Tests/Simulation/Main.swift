import Glibc
import Heimdallr

/// `Simulation [--seed N [--trace]] [--seeds N] [--first N] [--seconds N] [--only WORDS,…] [--all] [--broken]`
@main
struct Main {
    static func main() {
        // The order of sets and dictionaries is part of a run.
        if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
            setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
            var arguments = CommandLine.arguments.map { strdup($0) } + [nil]
            execv("/proc/self/exe", &arguments)
        }
        Scheduler.shared.install()
        let options = Options(Array(CommandLine.arguments.dropFirst()))
        if let seed = options.seed {
            exit(one(seed, options) ? 0 : 1)
        }
        exit(many(options) ? 0 : 1)
    }

    private static func one(_ seed: UInt64, _ options: Options) -> Bool {
        let world = World(Plan(seed: seed, only: options.only), keepsHistory: options.isTracing)
        let failure = world.run()
        if options.isTracing { print(world.transcript) }
        print("seed \(seed): \(failure ?? "good"); \(Scheduler.shared.steps) steps, \(world.fingerprint)")
        if failure != nil { print(Shrinker(seed, options.only).shrunk()) }
        return failure == nil
    }

    private static func many(_ options: Options) -> Bool {
        let start = ContinuousClock.now
        var (runs, requests) = (0, 0)
        var failed: [UInt64] = []
        for seed in options.first..<(options.first + options.seeds) {
            if let seconds = options.seconds, ContinuousClock.now - start > .seconds(seconds) { break }
            let world = World(Plan(seed: seed, only: options.only), keepsHistory: false)
            runs += 1
            if let failure = world.run() {
                failed.append(seed)
                print("seed \(seed): \(failure)")
                fflush(nil)
                if !options.showsAll {
                    print(Shrinker(seed, options.only).shrunk())
                    break
                }
            }
            requests += world.requests
        }
        print(
            "\(runs) seeds from \(options.first), \(requests) token requests, \(failed.count) failed\(failed.isEmpty ? "" : ": \(failed)")"
        )
        return failed.isEmpty
    }
}

struct Options {
    var seed: UInt64?
    var first: UInt64 = 1
    var seeds: UInt64 = 1_000_000
    var seconds: Int?
    var only: [String] = []
    var isTracing = false
    var showsAll = false

    init(_ words: [String]) {
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "--trace": isTracing = true
            case "--all": showsAll = true
            case "--broken": World.isBroken = true
            case "--seed": seed = rest.popFirst().flatMap { UInt64($0) }
            case "--first": first = rest.popFirst().flatMap { UInt64($0) } ?? 1
            case "--seeds": seeds = rest.popFirst().flatMap { UInt64($0) } ?? 1
            case "--seconds": seconds = rest.popFirst().flatMap { Int($0) }
            case "--only": only = rest.popFirst()?.split(separator: ",").map(String.init) ?? []
            default:
                print("unknown option: \(word)")
                exit(64)
            }
        }
        if seed == nil, seconds == nil, seeds == 1_000_000 { seeds = 1000 }
    }
}

/// Removes events from a failing plan as long as it fails in the same way.
struct Shrinker {
    private let plan: Plan

    init(_ seed: UInt64, _ only: [String]) { plan = Plan(seed: seed, only: only) }

    func shrunk() -> String {
        var best = plan
        let whole = World(plan, keepsHistory: false)
        _ = whole.run()
        var count = max(1, best.events.count / 2)
        while count >= 1 {
            var start = 0
            while start < best.events.count {
                var shorter = best
                shorter.events.removeSubrange(start..<min(start + count, best.events.count))
                let world = World(shorter, keepsHistory: false)
                if world.run() != nil, world.failureKind == whole.failureKind { best = shorter } else { start += count }
            }
            count /= 2
        }
        let world = World(best, keepsHistory: true)
        let failure = world.run() ?? "nothing"
        return "shrunk to \(best.events.count) of \(plan.events.count) events: \(failure)\n\(best.text)\n"
            + world.transcript.split(separator: "\n").suffix(40).map { "    \($0)" }.joined(separator: "\n")
    }
}
