/// Idle connections that serve one program's connection only, because it logged in on them: NTLM and Negotiate count for a
/// connection, not for a request (RFC 4559, section 6). They close with the bond. Loop's thread only.
public final class CarrierBond {
    private var carriers: [Origin: Carrier] = [:]
    /// Maximum of origins. Behind that, a connection is closed after its request.
    private static let limit = 16

    public init() {}

    deinit { for carrier in carriers.values where carrier.phase == .idle { carrier.close() } }

    /// Whether a connection to this origin is bound, and was idle when it was last used.
    public func holds(_ origin: Origin) -> Bool { carriers[origin]?.phase == .idle }

    func take(_ origin: Origin) -> Carrier? {
        guard let carrier = carriers.removeValue(forKey: origin), carrier.phase == .idle else { return nil }
        return carrier
    }

    /// - Returns: `false` if the connection can't be kept.
    func keep(_ carrier: Carrier) -> Bool {
        carriers = carriers.filter { $0.value.phase == .idle }
        guard carriers[carrier.origin] == nil, carriers.count < Self.limit else { return false }
        carriers[carrier.origin] = carrier
        return true
    }
}
