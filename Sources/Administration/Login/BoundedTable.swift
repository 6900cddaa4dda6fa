extension Dictionary {
    /// Makes room for one more entry of `capacity`: removes ended entries, or else the one that ends first.
    /// - Returns: the removed entries.
    @discardableResult
    mutating func makeRoom(
        of capacity: Int, now: ContinuousClock.Instant, end: (Value) -> ContinuousClock.Instant
    ) -> [Value] {
        var gone = filter { end($0.value) <= now }.map(\.key)
        if gone.isEmpty, count >= capacity, let first = self.min(by: { end($0.value) < end($1.value) })?.key {
            gone.append(first)
        }
        return gone.compactMap { removeValue(forKey: $0) }
    }
}
