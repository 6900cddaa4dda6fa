/// The connections to one origin. Idle connections are in the order of their last use, the most recent last.
final class OriginCarriers {
    let origin: Origin
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var idle: [Carrier] = []
    var open = 0

    init(_ origin: Origin) { self.origin = origin }
}
