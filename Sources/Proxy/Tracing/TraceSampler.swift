/// Decides at random which traces that begin here are recorded.
struct TraceSampler: Sendable, Equatable {
    /// Numbers up to this one are sampled; `nil` for none.
    private let last: UInt64?

    /// - Parameter share: from 0 for none to 1 for all.
    init(share: Double) {
        switch share {
        case ..<0, 0: last = nil
        case 1...: last = .max
        // 2^64 is exact, and so is the product except for its last bits.
        default: last = share > 0 ? UInt64(share * 18_446_744_073_709_551_616.0) : nil
        }
    }

    var takesNone: Bool { last == nil }

    /// - Parameter number: uniformly random.
    func takes(_ number: UInt64) -> Bool {
        guard let last else { return false }
        return number <= last
    }
}

/// A cheap random generator for sampling each request; it need not be unpredictable. SplitMix64, by Steele, Lea and
/// Flood, 2014.
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
