public import Configuration
public import CurlTransport
import HTTP2
import HTTPMessage
import HTTPServer
import Heimdallr
public import Reactor
import SigV4
import WireText

/// One HEAD without a token to an upstream, by the connections and protocols that serve requests, on request with the
/// upstream's fixed credentials. For tools that explain faults. Loop's thread only.
public final class UpstreamProbe: UpstreamStreamDelegate {
    public enum Outcome: Sendable {
        case answer(status: Int, date: String?, age: String?)
        /// The server ended the stream with RST_STREAM, so it speaks HTTP/2. Servers of gRPC accept no HEAD.
        case refusedByHTTP2
        /// Value: the error; `nil`: no answer came in time.
        case failed(TransportError?)
        /// A fixed credential can't be read, or can't be put on this request.
        case noCredential
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
    ///   - credentials: sources of the fixed credentials; `nil`: the request has none.
    public static func head(
        _ settings: UpstreamSettings, _ options: PoolOptions, agent: String, within limit: Duration,
        on loop: EventLoop, credentials: CredentialSources? = nil
    ) async -> Outcome {
        var settings = settings
        settings.injections = credentials == nil ? [] : settings.injections
        let fixed = settings.injections.map { credentials?.credential($0, entry: "", on: loop) { _, _ in } }
        for credential in fixed {
            await credential?.start()
            guard credential?.current() != nil else { return .noCredential }
        }
        return await withCheckedContinuation { [settings] continuation in
            loop.execute {
                let probe = UpstreamProbe(settings, fixed, options, agent, on: loop)
                probe?.start(within: limit) { continuation.resume(returning: $0) }
                if probe == nil { continuation.resume(returning: .failed(nil)) }
            }
        }
    }

    private init?(
        _ settings: UpstreamSettings, _ fixed: [FixedCredential?], _ options: PoolOptions, _ agent: String,
        on loop: EventLoop
    ) {
        let rule = UpstreamRule(settings, index: nil)
        guard let destination = rule.fixed else { return nil }
        self.destination = destination
        self.agent = agent
        self.loop = loop
        upstream = Upstream(rule, fixed: fixed, options: options, streams: UpstreamStreamPool(loop: loop))
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
        let (start, entries) = (output.count, upstream.rule.injection.all)
        let signer = upstream.injected.signer(entries)
        let target = target(entries)
        output.append("HEAD ")
        if form.isAbsolute {
            output.append(Array("\(destination.origin.scheme.rawValue)://".utf8))
            output.append(destination.host)
        }
        if signer == nil { output.append(target.bytes) } else { output.append(SignableTarget(target.bytes).text) }
        output.append(" HTTP/1.1\r\n")
        output.append(line: "Host: ", destination.host)
        output.append(line: "User-Agent: ", Array(agent.utf8))
        guard !entries.isEmpty else { return .send }
        output.append(upstream.rule.injection.setLines)
        EditHeadPhase.inject(entries, upstream, nil, to: &output)
        guard let signer else { return .send }
        guard let keys = upstream.injected.signingKeys else { return .withhold }
        let isSigned = EditHeadPhase.sign(
            signer, keys, SignableTarget(target.bytes), PayloadDigest.empty, namesPayload: signer.isStorage,
            from: start, to: &output)
        return isSigned ? .send : .withhold
    }

    /// Path and query, with the injected parameters.
    private func target(_ entries: EntrySet) -> ByteBuffer {
        var target = ByteBuffer(isSecret: true)
        target.append(upstream.rule.pathPrefix)
        let path: [UInt8] = upstream.rule.pathPrefix.isEmpty ? [ASCII.slash] : []
        if upstream.rule.injection.changesQuery(path.span, for: entries) {
            EditHeadPhase.writeQuery(path.span, entries, nil, upstream, to: &target)
        } else {
            target.append(path)
        }
        return target
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
