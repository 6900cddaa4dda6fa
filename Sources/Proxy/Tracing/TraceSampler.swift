/// Decides at random whether a trace that begins in this proxy is recorded.
struct TraceSampler: Sendable, Equatable {
    /// Largest random number that is sampled; `nil` if no trace is sampled.
    private let last: UInt64?

    /// - Parameter share: share of sampled traces, from 0 for none to 1 for all.
    init(share: Double) {
        switch share {
        case ..<0, 0: last = nil
        case 1...: last = .max
        // A Double holds 2^64 exactly, so only the last bits of the product are rounded.
        default: last = share > 0 ? UInt64(share * 18_446_744_073_709_551_616.0) : nil
        }
    }

    var takesNone: Bool { last == nil }

    /// - Parameter number: uniformly distributed random number.
    func takes(_ number: UInt64) -> Bool {
        guard let last else { return false }
        return number <= last
    }
}

/// A fast random generator for sampling, which need not be unpredictable. SplitMix64, by Steele, Lea and Flood, 2014.
struct FastRandom: RandomNumberGenerator, Sendable {
    private var state: UInt64

    init(seed: UInt64 = .random(in: .min ... .max)) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var number = state
        number = (number ^ number >> 30) &* 0xBF58_476D_1CE4_E5B9
        number = (number ^ number >> 27) &* 0x94D0_49BB_1331_11EB
        return number ^ number >> 31
    }
}
