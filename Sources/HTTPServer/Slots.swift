import Reactor

// The choice of a connection to close when all slots are taken.

/// Claim of a connection on its slot while the connection has no whole request, or while its program does not read the
/// answer. The connection with the lowest claim is replaced first.
struct SlotClaim: Comparable {
    /// Time that a connection has for its first request, and for each further one, before it may be replaced.
    static let grace = Duration.milliseconds(50)

    let isStalled: Bool
    /// Time at which the connection's own deadline passes.
    let deadline: LoopTime

    static func < (left: SlotClaim, right: SlotClaim) -> Bool {
        left.isStalled == right.isStalled ? left.deadline < right.deadline : right.isStalled
    }
}

/// Finds room when there are more programs than slots, by closing idle connections.
struct Room {
    /// Time between two checks while all slots are taken.
    static let interval = Duration.milliseconds(100)
    private static let complaintInterval = Duration.seconds(10)

    /// Whether no further programs are accepted.
    var isFull = false
    /// Connections that may be replaced, the weakest claim last, as of `replaceableAt`.
    var replaceable: [ServerConnection] = []
    var replaceableAt = LoopTime(nanoseconds: 0)
    private var count = 1
    private var nextComplaint = LoopTime(nanoseconds: 0)

    /// Number of connections to end in this check. It grows from check to check while programs wait.
    mutating func share(isAwaited: Bool) -> Int {
        guard isAwaited else {
            count = 1
            return 0
        }
        defer { count = min(count * 2, 1 << 16) }
        return count
    }

    /// Whether to report a failed accept now, at a limited rate.
    mutating func mayReport(at now: LoopTime) -> Bool {
        guard now >= nextComplaint else { return false }
        nextComplaint = now + Self.complaintInterval
        return true
    }
}

extension ServerConnection {
    /// Time at which the wait for a request began; `nil` during a request, or while output is unsent.
    var idleSince: LoopTime? {
        if phase == .multiplexed { return multiplexed?.idleSince }
        guard phase == .readingHead, deadline.kind == .idle, reader.input.isEmpty, output.isEmpty else { return nil }
        return deadline.since
    }

    /// Claim on the connection's slot; `nil` while a request may be on its way, or is answered without a stall.
    var claim: SlotClaim? {
        if let idleSince, now.since(idleSince) < SlotClaim.grace { return nil }
        let isWaiting =
            switch phase {
            case .readingHead: output.isEmpty
            case .busy: handler?.awaitsRequest == true
            case .multiplexed: multiplexed?.isIdle == true
            case .lingering, .resetting: true
            case .closing, .handedOver, .closed: false
            }
        guard isWaiting || deadline.kind == .room else { return nil }
        return SlotClaim(isStalled: !isWaiting, deadline: deadline.time)
    }
}
