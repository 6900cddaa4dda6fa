import Reactor
import Reports

/// Facts about one request for metrics and logs.
struct Ledger {
    let started: LoopTime
    /// Status seen by the program; 0 before an answer.
    var status = 0
    /// Whether the answer was cut in a way that the program can see.
    var wasCut = false
    /// Reason for the proxy's own answer: the last word of the problem's `type`.
    var refusal: String?
    /// Sentence on the cause, for the access log.
    var cause: String?
    /// What would change the proxy's own answer.
    var remedy: String?
    /// Proxy Error Type of a failure (RFC 9209, section 2.3).
    var error: String?
    var times = ExchangeTimes()
    /// Whether the injected credential was sent.
    var gaveCredential = false
    var replay = Replay()
    /// Whether the request was given to an upstream's stream.
    var isSent = false
    /// Number of bytes of the answer, including its head.
    var bytesSent: UInt64 = 0
    /// Number of bytes from the program of an upgraded connection.
    var bytesSwitched: UInt64 = 0
    /// Result of putting a credential on the request; `nil` if none is due.
    var injection: InjectionResult?
    /// ID of the request in logs; `nil` before a log needs it.
    var requestID: [UInt8]?

    /// Status in logs: 499 if the program left before the answer, 0 if the answer was cut.
    var loggedStatus: Int { wasCut ? 0 : status != 0 ? status : 499 }

    /// Notes an answer of the proxy.
    /// - Parameter isGRPC: whether the request is a gRPC call, whose HTTP status is always 200.
    mutating func note(_ problem: Problem, isGRPC: Bool = false) {
        status = isGRPC ? Problem.statusOfCalls : problem.status
        refusal = problem.row.word
        cause = problem.cause ?? cause
        remedy = problem.phrase
        error = problem.row.error
    }
}
