/// Idle connections that serve one program's connection only, because it logged in on them: NTLM and Negotiate count for a
/// connection, not for a request (RFC 4559, section 6). They close with the bond. Loop's thread only.
public final class CarrierBond {
    /// User of the proxy that logged in; `nil` without `proxy.users`. The bond is of no use to another one.
    public let user: String?
    private var carriers: [Carrier] = []
    /// Maximum of connections. Behind that, a connection is closed after its request.
    private static let limit = 16

    public init(user: String?) { self.user = user }

    deinit { for carrier in carriers where carrier.phase == .idle { carrier.close() } }

    /// Returns an idle connection of this pool, which decides about identity, trust and addresses. Another pool's does not
    /// count, be it to the same origin.
    func take(_ origin: Origin, of pool: CarrierPool) -> Carrier? {
        dropClosed()
        guard let index = carriers.firstIndex(where: { $0.pool === pool && $0.origin == origin }) else { return nil }
        return carriers.remove(at: index)
    }

    /// - Returns: `false` if the connection can't be kept.
    func keep(_ carrier: Carrier) -> Bool {
        dropClosed()
        guard carriers.count < Self.limit else { return false }
        carriers.append(carrier)
        return true
    }

    /// Forgets the connections that their pools have closed. Those pools may be gone.
    private func dropClosed() { carriers.removeAll { $0.phase != .idle } }
}
