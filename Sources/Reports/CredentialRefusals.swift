/// How an API has judged the credential of one upstream's rule lately: 401 and 403, UNAUTHENTICATED and PERMISSION_DENIED
/// of gRPC are refusals.
public struct CredentialRefusals: Sendable, Equatable {
    /// Refusals since the API last accepted a request. Answers that say nothing of the credential do not count.
    public var inARow: UInt64 = 0
    /// 401 or 403; `nil`: there was no refusal.
    public var last: (status: Int, ago: Duration)?
    public var sinceAccepted: Duration?

    /// Refusals in a row after which a credential counts as refused. One 403 may be the request's own fault.
    public static let most: UInt64 = 3

    public init() {}

    public var isLasting: Bool { inARow >= Self.most }

    /// Adds the answers on another loop. An acceptance there ends a row of refusals that is older.
    public mutating func add(_ other: CredentialRefusals) {
        let accepted = [sinceAccepted, other.sinceAccepted].compactMap(\.self).min()
        let rows = [self, other].filter { row in
            guard let last = row.last else { return false }
            return accepted.map { last.ago <= $0 } ?? true
        }
        inARow = rows.reduce(0) { $0 &+ $1.inARow }
        last = rows.compactMap(\.last).min { $0.ago < $1.ago }
        sinceAccepted = accepted
    }

    public static func == (left: CredentialRefusals, right: CredentialRefusals) -> Bool {
        left.inARow == right.inARow && left.last?.status == right.last?.status && left.last?.ago == right.last?.ago
            && left.sinceAccepted == right.sinceAccepted
    }
}
