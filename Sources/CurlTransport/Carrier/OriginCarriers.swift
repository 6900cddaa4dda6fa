/// The connections to one origin; of the idle ones, the latest used is last.
final class OriginCarriers {
    let origin: Origin
    #if !DEBUG
        @safe @exclusivity(unchecked)
    #endif
    var idle: [Carrier] = []
    var open = 0

    init(_ origin: Origin) { self.origin = origin }
}
