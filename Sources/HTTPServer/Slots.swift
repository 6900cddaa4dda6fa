import Reactor

// The connection that gives way when all slots are taken.

/// The claim of a connection on its slot while it has no whole request, or has an answer that its client does not take.
/// The lowest claim goes first.
struct SlotClaim: Comparable {
    /// Time that a connection has for its first request, and for each next one, before it may be replaced.
    static let grace = Duration.milliseconds(50)

    let isStalled: Bool
    /// Time at which the connection's own deadline passes.
    let deadline: LoopTime

    static func < (left: SlotClaim, right: SlotClaim) -> Bool {
        left.isStalled == right.isStalled ? left.deadline < right.deadline : right.isStalled
    }
}

/// Makes room when there are more clients than slots: ends idle connections in favour of waiting clients.
struct Room {
    /// Time between two checks while all slots are taken.
    static let interval = Duration.milliseconds(100)
    private static let complaintInterval = Duration.seconds(10)

    /// No further clients are accepted.
    var isFull = false
    /// Connections that may be replaced, the weakest claim last, as of `replaceableAt`.
    var replaceable: [ServerConnection] = []
    var replaceableAt = LoopTime(nanoseconds: 0)
    private var count = 1
    private var nextComplaint = LoopTime(nanoseconds: 0)

    /// Number of connections to end in this check. It grows from check to check while clients wait.
    mutating func share(isAwaited: Bool) -> Int {
        guard isAwaited else {
            count = 1
            return 0
        }
        defer { count = min(count * 2, 1 << 16) }
        return count
    }

    /// Whether to report a failed accept now, at a limited rate.
    mutating func isWorthSaying(at now: LoopTime) -> Bool {
        guard now >= nextComplaint else { return false }
        nextComplaint = now + Self.complaintInterval
        return true
    }
}

extension ServerConnection {
    /// Time since which the connection waits for a request; `nil` during a request or unsent output.
    var idleSince: LoopTime? {
        if let http2 { return http2.isQuiet ? http2.quietSince : nil }
        guard phase == .readingHead, deadline.kind == .idle, reader.input.isEmpty, output.isEmpty else { return nil }
        return deadline.since
    }

    /// Claim on the connection's slot; `nil` while its request is answered, or may be on its way.
    var claim: SlotClaim? {
        if let idleSince, now.since(idleSince) < SlotClaim.grace { return nil }
        let isWaiting =
            switch phase {
            case .readingHead: output.isEmpty
            case .busy: handler?.awaitsRequest == true
            case .lingering: true
            case .closing, .handedOver, .http2, .closed: false
            }
        guard isWaiting || deadline.kind == .room else { return nil }
        return SlotClaim(isStalled: !isWaiting, deadline: deadline.time)
    }
}
