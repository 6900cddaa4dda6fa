import HTTPMessage
import HTTPServer
import Reactor
import Reports

/// What metrics and access log want to know of one request, as far as it can't be read from the request itself.
struct Ledger {
    let started: LoopTime
    /// As the client saw it; 0 before there is an answer.
    var status = 0
    /// The answer was cut: the client can't take it for whole.
    var wasCut = false
    /// Why we answered ourselves: the last word of the problem's `type`.
    var refusal: String?
    /// What is wrong with a request that can't be understood.
    var cause: String?
    /// What became of it as a Proxy Error Type (RFC 9209, section 2.3), where it failed.
    var error: String?
    var times = ExchangeTimes()
    /// What its rule puts on has left for the upstream.
    var gaveCredential = false
    /// The upstream was asked more than once.
    var wasReplayed = false
    /// The last try went over HTTP/2.
    var isHTTP2 = false
    /// It was handed on to its destination.
    var isSent = false
    /// Bytes of the answer, its head included.
    var bytesSent: UInt64 = 0
    /// Bytes that an upgraded connection's client has sent.
    var bytesSwitched: UInt64 = 0
    /// What became of its token, where its upstream has a client.
    var injection: InjectionResult?
    /// Its number on this loop, where the program gave it no name.
    var number: UInt64?

    init(started: LoopTime) { self.started = started }
}

extension Forwarder {
    /// For the metrics.
    func result(at now: LoopTime) -> ProxyMetrics.Result {
        let bodyTaken = connection.bodyTaken
        // Those of another protocol were counted as they went.
        let isSwitched = current.exchange.isSwitched
        let isAnswered = current.exchange.isAnswered
        return ProxyMetrics.Result(
            status: current.ledger.status, duration: now.nanoseconds &- current.ledger.started.nanoseconds,
            sent: isSwitched ? 0 : bodyTaken,
            received: isAnswered && !isSwitched ? current.ledger.bytesSent : 0, injection: current.ledger.injection,
            isOwn: current.ledger.refusal != nil && !current.ledger.isSent)
    }
}
