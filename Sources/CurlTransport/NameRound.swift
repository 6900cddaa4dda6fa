import Reactor

/// The names that one exchange needs the addresses of before libcurl can connect. Loop's thread only.
final class NameRound {
    /// Whom libcurl wants the address of.
    struct Party {
        let host: String
        let port: UInt16
        /// The connection goes there; otherwise a proxy is told its address.
        let isDialled: Bool
    }

    var left: [Party]
    /// For CURLOPT_RESOLVE(3).
    var lines: [String] = []
    /// The connection has to stand by then.
    let deadline: LoopTime
    var question: NameQuestion?
    var timer: LoopTimer?

    init(_ parties: [Party], deadline: LoopTime) {
        left = parties
        self.deadline = deadline
    }

    deinit { question?.abandon() }

    /// libcurl keeps it for CURLOPT_DNS_CACHE_TIMEOUT(3).
    static func line(_ party: Party, _ addresses: [NumericAddress]) -> String {
        "+\(party.host):\(party.port):\(addresses.map(\.description).joined(separator: ","))"
    }
}
