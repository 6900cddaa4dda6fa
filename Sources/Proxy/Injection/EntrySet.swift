/// Some entries of an upstream's `inject`, by their place in the list.
struct EntrySet: OptionSet {
    let rawValue: UInt32

    init(rawValue: UInt32) { self.rawValue = rawValue }

    init(index: Int) { rawValue = 1 << UInt32(index) }

    @inline(__always) func contains(index: Int) -> Bool { rawValue >> UInt32(index) & 1 != 0 }
}
