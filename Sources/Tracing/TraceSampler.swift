/// Says which traces are recorded that begin here: one in so many, by lot.
public struct TraceSampler: Sendable, Equatable {
    /// Numbers up to this one are taken; `nil`: none.
    private let last: UInt64?

    /// - Parameter share: from 0, none, to 1, all.
    public init(share: Double) {
        switch share {
        case ..<0, 0: last = nil
        case 1...: last = .max
        // 2^64 is exact, and so is the product but for its last bits.
        default: last = share > 0 ? UInt64(share * 18_446_744_073_709_551_616.0) : nil
        }
    }

    public var takesNone: Bool { last == nil }

    /// - Parameter number: any, each as likely as the others.
    public func takes(_ number: UInt64) -> Bool {
        guard let last else { return false }
        return number <= last
    }
}

/// Lots are drawn for each request, so they must be cheap; nobody is the worse for whoever guesses them. SplitMix64, by
/// Steele, Lea and Flood, 2014.
public struct LotDrawing: RandomNumberGenerator, Sendable {
    private var state: UInt64

    public init(seed: UInt64 = .random(in: .min ... .max)) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var number = state
        number = (number ^ number >> 30) &* 0xBF58_476D_1CE4_E5B9
        number = (number ^ number >> 27) &* 0x94D0_49BB_1331_11EB
        return number ^ number >> 31
    }
}
