/// The newest DPoP nonce of each server of one upstream. A wildcard upstream may have more servers than `limit`: a
/// further server's nonce replaces the nonce that was noted longest ago.
struct NonceList {
    private var entries: [(host: [UInt8], nonce: String)] = []
    private static let limit = 256

    func newest(of host: [UInt8]) -> String? { entries.last { $0.host == host }?.nonce }

    mutating func note(_ nonce: String, of host: [UInt8]) {
        if let index = entries.lastIndex(where: { $0.host == host }) {
            entries.remove(at: index)
        } else if entries.count >= Self.limit {
            entries.removeFirst()
        }
        entries.append((host, nonce))
    }
}
