import Reactor

extension Carrier {
    enum Phase {
        case dialling, inUse, idle, closed
    }

    /// Facts about the connection that its pool needs.
    struct Membership {
        let siblings: OriginCarriers
        let use: CarrierUse
        let opened: LoopTime
        /// Generation of the pool's TLS material at the time of dialling.
        let generation: UInt64
        var idleSince = LoopTime(nanoseconds: 0)
        /// End of the last idle time.
        var busySince = LoopTime(nanoseconds: 0)
        /// Whether a timer is set for the reaction to the bytes sent since `busySince`.
        var awaitsReaction = false
        /// Position in the pool's list.
        var index = 0
        var hasServed = false
        /// Whether the connection is idle with its owner, who closes it if the pool needs it.
        var isResting = false
    }

    /// State of the connected socket, and of TLS on it.
    struct Wire {
        var canRead = true
        var canWrite = true
        var isPeerClosed = false
        var hasFailed = false
        /// Whether no further exchange may use the connection.
        var isSpent = false
        var hasMadeCloseNotify = false
        var speaksHTTP2 = false
        /// Bytes that an HTTP/2 server sent before the session began.
        var early: [UInt8] = []
    }
}
