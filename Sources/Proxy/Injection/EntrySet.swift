/// A set of an upstream's `inject` entries, by index.
struct EntrySet: OptionSet {
    let rawValue: UInt32

    init(rawValue: UInt32) { self.rawValue = rawValue }

    init(index: Int) { rawValue = 1 << UInt32(index) }

    @inline(__always) func contains(index: Int) -> Bool { rawValue >> UInt32(index) & 1 != 0 }
}
