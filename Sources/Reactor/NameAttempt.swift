/// One look-up of a name. It has a thread of its own, which can't be stopped.
struct NameAttempt: Sendable, Hashable {
    /// The record types of the query. `both` gives addresses in the system's order (RFC 6724). If it takes long, A and
    /// AAAA are asked separately, because some servers answer only one of them (RFC 8305, section 3).
    enum Family: Sendable, Hashable { case both, ipv4, ipv6 }

    let name: String
    let family: Family
    let id: UInt64

    /// Time that the AAAA answer has after the A answer, if both are asked separately (RFC 8305, section 3).
    static let resolutionDelay = Duration.milliseconds(50)
}

/// Addresses of a name by family, as separate queries found them.
struct NameParts {
    var ipv4: [NumericAddress]?
    var ipv6: [NumericAddress]?

    /// All addresses, IPv6 first (RFC 6724, section 2.1); libcurl tries both families.
    var all: [NumericAddress] { (ipv6 ?? []) + (ipv4 ?? []) }
    var isEmpty: Bool { all.isEmpty }

    mutating func set(_ addresses: [NumericAddress], of family: NameAttempt.Family) {
        if family == .ipv6 { ipv6 = addresses } else { ipv4 = addresses }
    }
}
