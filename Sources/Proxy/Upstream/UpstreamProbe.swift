public import Configuration
public import CurlTransport
import HTTP2
import HTTPMessage
import HTTPServer
public import Reactor
import WireText

/// One HEAD without a token to an upstream, by the connections and protocols that serve requests. For tools that explain
/// faults. Loop's thread only.
public final class UpstreamProbe: UpstreamStreamDelegate {
    public enum Outcome: Sendable {
        case answer(status: Int, date: String?, age: String?)
        /// The server ended the stream with RST_STREAM, so it speaks HTTP/2. Servers of gRPC accept no HEAD.
        case refusedByHTTP2
        /// Value: the error; `nil`: no answer came in time.
        case failed(TransportError?)
    }

    private let upstream: Upstream
    private let destination: Destination
    private let agent: String
    private let loop: EventLoop
    private var stream: (any UpstreamStream)?
    private var outcome: Outcome?
    private var timer: LoopTimer?
    private var done: ((Outcome) -> Void)?

    /// - Parameters:
    ///   - settings: of an upstream with a `url`, whose path is asked.
    ///   - agent: value of User-Agent.
    public static func head(
        _ settings: UpstreamSettings, _ options: PoolOptions, agent: String, within limit: Duration,
        on loop: EventLoop
    ) async -> Outcome {
        await withCheckedContinuation { continuation in
            loop.execute {
                let probe = UpstreamProbe(settings, options, agent, on: loop)
                probe?.start(within: limit) { continuation.resume(returning: $0) }
                if probe == nil { continuation.resume(returning: .failed(nil)) }
            }
        }
    }

    private init?(_ settings: UpstreamSettings, _ options: PoolOptions, _ agent: String, on loop: EventLoop) {
        var settings = settings
        // The probe has no credential, nor the values of one.
        settings.injections = []
        let rule = UpstreamRule(settings, index: nil)
        guard let destination = rule.fixed else { return nil }
        self.destination = destination
        self.agent = agent
        self.loop = loop
        upstream = Upstream(rule, options: options, streams: UpstreamStreamPool(loop: loop))
    }

    private func start(within limit: Duration, _ done: @escaping (Outcome) -> Void) {
        self.done = done
        timer = LoopTimer(on: loop) { [unowned self] in
            // The stream may be the last to hold the probe.
            let probe = self
            probe.stream?.cancel()
            probe.finish(.failed(nil))
        }
        timer?.schedule(at: max(loop.now, .current()) + limit)
        begin()
    }

    private func begin() {
        var request = UpstreamRequest(origin: destination.origin)
        request.isHead = true
        if let end = upstream.begin(request, for: self, began: { stream = $0 }) { upstreamEnded(end) }
    }

    private func finish(_ outcome: Outcome) {
        done?(outcome)
        (done, timer) = (nil, nil)
        // The connection may be in the middle of a call.
        let kept = LoopBound(self, on: loop)
        loop.execute { withExtendedLifetime(kept) {} }
    }

    // MARK: The stream's events

    func writeHead(_ form: HeadForm, to output: inout ByteBuffer) -> HeadStep {
        output.append("HEAD ")
        if form.isAbsolute {
            output.append(Array("\(destination.origin.scheme.rawValue)://".utf8))
            output.append(destination.host)
        }
        output.append(upstream.rule.pathPrefix)
        if upstream.rule.pathPrefix.isEmpty { output.append("/") }
        output.append(" HTTP/1.1\r\n")
        output.append(line: "Host: ", destination.host)
        output.append(line: "User-Agent: ", Array(agent.utf8))
        return .send
    }

    func upstreamAnswered(_ head: borrowing ResponseHead) -> Bool {
        guard !head.isInterim else { return true }
        let (bytes, fields) = (head.bytes, head.fields)
        func value(_ name: String) -> String? {
            fields.first { bytes.span[$0.name].text.lowercased() == name }.map { bytes.span[$0.value].text }
        }
        outcome = .answer(status: head.status, date: value("date"), age: value("age"))
        return true
    }

    func upstreamEnded(_ end: UpstreamEnd) {
        guard done != nil else { return }
        stream = nil
        if let outcome { return finish(outcome) }
        // The next attempt is by HTTP/1.1.
        if end.error?.kind == .http2Missing { return begin() }
        finish(end.code == nil ? .failed(end.error) : .refusedByHTTP2)
    }

    var hasTokenEnded: Bool { false }
    var isWanted: Bool { true }
    var mayReplay: Bool { false }
    func upstreamConnected(isReused: Bool) {}
    func answerRoom() -> Int { 64 << 10 }
    func mayReadAhead() -> Bool { false }
    func upstreamSent(_ body: Span<UInt8>) -> BodyTaking { .taken }
    func takeUpload(into bytes: inout MutableSpan<UInt8>) -> UploadStep { .end }
    func takeTrailers() -> [(name: [UInt8], value: [UInt8])] { [] }
    func upstreamEndedItsSide() {}
}
