/// Counts of the look-ups under way.
struct NameSlots {
    private var taken = 0
    private var ofProgramNames = 0
    private var byZone: [Substring: Int] = [:]
    /// Look-ups that began before the system's resolver changed, and have not ended.
    private var abandoned = 0

    /// - Parameter share: divisor of the limits.
    func hasRoom(_ name: String, isFromProgram: Bool, _ limits: NameLimits, share: Int = 1) -> Bool {
        guard taken < limits.slots / share, taken + abandoned < limits.threads else { return false }
        if isFromProgram, ofProgramNames >= limits.slotsOfProgramNames / share { return false }
        return byZone[Self.zone(of: name), default: 0] < limits.slotsOfZone / share
    }

    mutating func begin(_ name: String, isFromProgram: Bool) {
        taken += 1
        if isFromProgram { ofProgramNames += 1 }
        byZone[Self.zone(of: name), default: 0] += 1
    }

    mutating func end(_ name: String, isFromProgram: Bool) {
        taken -= 1
        if isFromProgram { ofProgramNames -= 1 }
        let zone = Self.zone(of: name)
        byZone[zone, default: 1] -= 1
        if byZone[zone] == 0 { byZone[zone] = nil }
    }

    mutating func abandonAll() {
        abandoned += taken
        (taken, ofProgramNames, byZone) = (0, 0, [:])
    }

    mutating func endAbandoned() { abandoned = max(0, abandoned - 1) }

    /// The last two labels: `b.example` of `a.b.example.`
    private static func zone(of name: String) -> Substring {
        let labels = name.split(separator: ".")
        guard labels.count > 2 else { return name.last == "." ? name.dropLast() : name[...] }
        return name[labels[labels.count - 2].startIndex..<labels[labels.count - 1].endIndex]
    }
}
