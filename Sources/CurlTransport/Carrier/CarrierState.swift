import CLibcurl
import Reactor

extension Carrier {
    enum Phase {
        case dialling, inUse, idle, closed
    }

    /// Place in the pool.
    struct Membership {
        let siblings: OriginCarriers
        let use: CarrierUse
        let opened: LoopTime
        /// Generation of the pool's TLS material at the time of dialling.
        let generation: UInt64
        var idleSince = LoopTime(nanoseconds: 0)
        /// Position in the pool's list.
        var index = 0
        var hasServed = false
        /// Whether the owner has no request on the connection, and closes it if the pool needs it.
        var isResting = false
    }

    /// State of libcurl's work until the connection is ready.
    @safe struct Dialling {
        /// Request that the connection is dialled for.
        var request: CarrierRequest?
        /// Latest time for the connection to be ready.
        let deadline: LoopTime
        var names: NameLookUp?
        var connectTo: UnsafeMutablePointer<curl_slist>?
        var resolve: UnsafeMutablePointer<curl_slist>?
        /// Whether libcurl's multi handle has it.
        var isAdded = false
        var verdict = AddressPolicy.Verdict.allowed
        /// Counts libcurl's steps in the handshake with a next proxy.
        var steps: ProxySteps?
        /// Which TLS handshakes offer HTTP/2.
        var offer: UnsafeMutablePointer<heimdallr_http2_offer>?
        /// libcurl's words for the last error; `nil` when they are no longer needed.
        var errorText: UnsafeMutablePointer<CChar>?

        init(_ request: CarrierRequest) {
            self.request = request
            deadline = request.deadline
        }
    }

    /// State of the connected socket, and of TLS on it.
    struct Wire {
        var canRead = true
        var canWrite = true
        var isPeerClosed = false
        var hasFailed = false
        /// No other exchange may use the connection.
        var isSpent = false
        var hasSaidEnd = false
        var speaksHTTP2 = false
        /// Bytes that an HTTP/2 server sent before the session began.
        var early: [UInt8] = []
    }
}
