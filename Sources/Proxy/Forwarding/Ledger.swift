import Reactor
import Reports

/// Facts of one request for metrics and access log.
struct Ledger {
    let started: LoopTime
    /// Status seen by the client; 0 before an answer.
    var status = 0
    /// Whether the answer was cut, visibly for the client.
    var wasCut = false
    /// Reason for the proxy's own answer: the last word of the problem's `type`.
    var refusal: String?
    var cause: String?
    /// Proxy Error Type of a failure (RFC 9209, section 2.3).
    var error: String?
    var times = ExchangeTimes()
    /// The injected credential was sent.
    var gaveCredential = false
    var wasReplayed = false
    var isSent = false
    /// Bytes of the answer with its head.
    var bytesSent: UInt64 = 0
    /// Bytes from the client of an upgraded connection.
    var bytesSwitched: UInt64 = 0
    /// Result for the token, if the upstream has a client.
    var injection: InjectionResult?
    /// `nil` before it is needed.
    var requestID: [UInt8]?

    /// Status in logs; 499: the client left before the answer, 0: the answer was cut.
    var loggedStatus: Int { wasCut ? 0 : status != 0 ? status : 499 }

    /// Notes an answer of the proxy.
    /// - Parameter isGRPC: its status is for gRPC.
    mutating func note(_ problem: Problem, isGRPC: Bool = false) {
        status = isGRPC ? Problem.statusOfCalls : problem.status
        refusal = problem.word.rawValue
        cause = problem.cause
        error = problem.error
    }
}
