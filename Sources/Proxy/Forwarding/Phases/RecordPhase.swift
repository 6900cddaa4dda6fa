import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Reactor
import Reports
import TLSServer
import WireText

/// Counts a request and makes its record, for the access log, the audit stream and the span.
enum RecordPhase {
    static func run(_ context: inout Context, _ progress: StreamProgress) {
        let shard = context.shard
        let result = result(context, progress)
        context.installed.requestEnded(result, slot: slot(context))
        if result.verdict != .none { note(result.verdict, result.status, &context) }
        if let reason = context.ledger.refusal {
            shard.counters.refused(reason)
        } else if let obstacle = context.ledger.replay.obstacle {
            context.ledger.cause = context.ledger.cause ?? obstacle.sentence
        }
        let span = context.span
        let auditSink = audit(context) == nil ? nil : shard.observer.audit
        let isWritten = shard.observer.accessLog != nil || auditSink != nil || span != nil
        if shard.observer.keepsRequests { keep(&context, isWritten: isWritten) }
        guard isWritten else { return }
        let record = record(&context)
        shard.observer.accessLog?(record)
        auditSink?(record)
        if let span, let spans = shard.observer.spans { spans.ended(ExchangeSpan(span, record)) }
    }

    // MARK: Counters

    private static func result(_ context: borrowing Context, _ progress: StreamProgress) -> ProxyMetrics.Result {
        let (now, bodyTaken) = (context.shard.loop.now, progress.bodyTaken)
        // Bytes of an upgraded connection were counted as they passed.
        let isSwitched = context.exchange.isSwitched
        let isAnswered = context.exchange.isAnswered
        let isGRPC = context.exchange.request.isGRPC
        return ProxyMetrics.Result(
            status: context.ledger.status, duration: now.nanoseconds &- context.ledger.started.nanoseconds,
            sent: isSwitched ? 0 : bodyTaken,
            received: isAnswered && !isSwitched ? context.ledger.bytesSent : 0, injection: context.ledger.injection,
            isOwn: context.ledger.refusal != nil
                && (!context.ledger.isSent || context.ledger.error == "proxy_internal_response"),
            call: isGRPC ? ProxyMetrics.index(of: context.exchange.callStatus) : nil,
            verdict: verdict(context, isGRPC: isGRPC))
    }

    private static func verdict(_ context: borrowing Context, isGRPC: Bool) -> CredentialVerdict {
        switch context.ledger.injection {
        case .injected, .replayed: break
        case .kept, .failed, nil: return .none
        }
        if context.ledger.replay.isRefused { return .unauthorized }
        guard context.ledger.refusal == nil else { return .none }
        return CredentialVerdict(
            status: context.ledger.status, call: isGRPC ? context.exchange.callStatus ?? .unknown : nil)
    }

    /// Notes whether the API accepted the credential, and reports once in a row of refusals that it is refused.
    private static func note(_ verdict: CredentialVerdict, _ status: Int, _ context: inout Context) {
        guard let upstream = context.upstream else { return }
        let now = context.shard.loop.now
        guard verdict != .accepted else { return upstream.credentialRecord.accepted(at: now) }
        upstream.credentialRecord.refused(verdict == .forbidden ? 403 : 401, at: now)
        guard upstream.credentialRecord.refusals == CredentialRefusals.most else { return }
        context.shard.observer.credentialRefused(
            CredentialRefusal(
                upstream: upstream.rule, status: status, url: url(context), requestID: requestID(&context)))
    }

    private static func slot(_ context: borrowing Context) -> Int {
        let isConnect = context.stream.request.with { head, _ in head.methodKind == .connect }
        return context.installed.slot(context.admitted.rule, isConnect: isConnect)
    }

    /// Counts bytes of a tunnel or an upgraded connection as they pass. Such connections may last for days.
    static func bytesPassed(_ context: borrowing Context, sent: UInt64 = 0, received: UInt64 = 0) {
        context.installed.metrics.moved(slot: slot(context), sent: sent, received: received)
    }

    // MARK: The record

    private static func record(_ context: inout Context) -> RequestRecord {
        let id = requestID(&context)
        let (admitted, ledger) = (context.admitted, context.ledger)
        var record = RequestRecord()
        describeTarget(context, in: &record)
        record.status = ledger.loggedStatus
        record.shownStatus = ledger.status
        record.grpcStatus = context.exchange.callStatus?.code
        record.reason = ledger.refusal
        record.cause = ledger.cause
        record.errorClass = ledger.error
        record.wasReplayed = ledger.replay.wasMade
        if ledger.refusal == nil { record.notReplayed = ledger.replay.obstacle?.rawValue }
        record.isHTTP2 = ledger.times.isHTTP2
        record.version = context.exchange.request.version
        record.requestID = id
        record.traceID = context.span?.trace
        record.bytesSent = ledger.bytesSent
        record.bytesReceived =
            (context.exchange.isSwitched ? 0 : context.stream.progress.bodyTaken) + ledger.bytesSwitched
        if let tunnel = context.tunnel {
            record.bytesSent = tunnel.toProgram.count
            record.bytesReceived = tunnel.toTarget.count
        }
        describeTimes(context, in: &record)
        record.audit = audit(context)
        if let upstream = admitted.rule {
            record.upstream = upstream.name
            record.rule = upstream.settings.metadata == nil ? upstream.index : nil
            record.client = admitted.issued ?? upstream.settings.client
            if record.client == nil, upstream.settings.injects { record.injection = upstream.settings.injectionText }
        }
        record.user = admitted.caller.user
        record.certificate = admitted.caller.certificate?.name
        record.peer = context.stream.source.peer
        record.address = context.sender.address ?? context.stream.source.address
        record.listener = context.shard.listener(context.stream.source.listener, under: context.installed)?.address
        return record
    }

    private static func describeTarget(_ context: Context, in record: inout RequestRecord) {
        let (admitted, isSent) = (context.admitted, context.ledger.isSent)
        if isSent {
            record.origin = admitted.destination?.origin
            record.pathPrefix = context.upstream?.rule.pathPrefix ?? []
        }
        let destination = isSent ? admitted.destination : nil
        context.stream.request.with { head, bytes in
            guard !bytes.isEmpty else { return }
            guard !isHidden(head, bytes, context) else { return record.path = hidden }
            record.method = Array(bytes[head.method].text.utf8)
            withTarget(head, bytes, destination, admitted.target) { host, path, isRoot in
                record.host = destination?.host ?? Array(host.text.utf8)
                record.path = isRoot ? root(head) : Array(path.text.utf8)
            }
        }
    }

    private static func describeTimes(_ context: Context, in record: inout RequestRecord) {
        let (times, start, now) = (context.ledger.times, context.ledger.started, context.shard.loop.now)
        record.duration = now.since(start)
        record.startedAt = WallTime.now - record.duration
        record.tokenWait = times.tokenWait(now)
        record.connect = times.connect
        record.firstByte = times.firstByte
        record.isReused = times.isReused
        record.tokenCame = times.tokenCame?.since(start)
        record.connected = times.connected?.since(start)
        record.answered = times.answered?.since(start)
    }

    /// Returns whether the request was given or denied a credential; `nil` if neither.
    private static func audit(_ context: borrowing Context) -> RequestRecord.Audit? {
        if context.ledger.gaveCredential { return .given }
        if context.admitted.issued != nil { return .issued }
        if context.admitted.exported { return .exported }
        // Denied: the proxy refused a request that was to get a credential, or refused it by a rule.
        guard let error = context.ledger.error, context.ledger.refusal != nil else { return nil }
        return !context.admitted.entries.isEmpty || error == "http_request_denied" ? .denied : nil
    }

    static func requestID(_ context: inout Context) -> [UInt8] {
        if let known = context.ledger.requestID { return known }
        let placeholders = context.installed.gate.placeholders
        let own: [UInt8]? = context.stream.request.with { head, bytes in
            guard !bytes.isEmpty, let id = RequestID.read(head.fields, in: bytes) else { return nil }
            return placeholders?.isIn(id.span) == true ? nil : id
        }
        let id = own ?? context.shard.nextRequestID()
        context.ledger.requestID = id
        return id
    }

    /// Whether the request was refused, and its address has a placeholder, which no log may show. A malformed head is
    /// known only in part.
    static func isHidden(_ head: RequestHead, _ bytes: Span<UInt8>, _ context: borrowing Context) -> Bool {
        guard context.ledger.refusal != nil, let placeholders = context.installed.gate.placeholders else {
            return false
        }
        let asked = head.asked(in: bytes)
        return placeholders.isIn(bytes[head.method]) || placeholders.isIn(bytes[asked.path])
            || placeholders.isIn(bytes[asked.authority])
    }

    /// Path of a request whose address is hidden.
    static let hidden = Array("(placeholder)".utf8)

    /// Passes on host and path of a request, without its query. Of a root (`root`) the path is empty.
    /// - Parameter destination: where the request was sent; `nil`: the address in its head counts.
    static func withTarget(
        _ head: RequestHead, _ bytes: Span<UInt8>, _ destination: Destination?, _ target: TargetForm,
        _ body: (_ host: Span<UInt8>, _ path: Span<UInt8>, _ isRoot: Bool) -> Void
    ) {
        if let destination, case .path(let range) = target, !range.isEmpty {
            let path = withoutQuery(range, in: bytes)
            let host = destination.host
            return body(host.span, bytes[path], path.isEmpty)
        }
        // A request that went to no upstream is logged with the address in its head.
        let asked = head.asked(in: bytes)
        if let destination {
            let host = destination.host
            body(host.span, bytes[asked.path], asked.isRoot)
        } else {
            body(bytes[asked.authority], bytes[asked.path], asked.isRoot)
        }
    }

    private static func withoutQuery(_ range: ByteRange, in bytes: Span<UInt8>) -> ByteRange {
        let start = Int(range.start)
        return ByteRange(start, start + bytes[range].position(of: UInt8(ascii: "?")))
    }

    /// Returns the path of a target without a path, which is the root or only a query: `*` for OPTIONS (RFC 9112, section
    /// 3.2.4), else `/`.
    static func root(_ head: RequestHead) -> [UInt8] { head.methodKind == .options ? asterisk : slash }

    private static let (asterisk, slash) = (Array("*".utf8), Array("/".utf8))

    /// Reports a failed exchange with an upstream, or a failed dial for a tunnel.
    static func report(_ error: TransportError, _ context: inout Context) {
        let problem = Problem(error)
        let admitted = context.admitted
        context.shard.observer.upstreamFailed(
            UpstreamFailure(
                upstream: admitted.rule?.name ?? TrafficGroup.tunnels.rawValue,
                client: admitted.rule?.settings.client, url: url(context), requestID: requestID(&context),
                error: error, reason: problem.row.title, advice: problem.detail))
    }

    /// Reports a limit that ends an exchange. The access log gets its key, too.
    static func report(_ limit: ReachedLimit, _ context: inout Context) {
        context.ledger.cause = context.ledger.cause ?? "\(limit.reason) (\(limit.key))"
        let upstream = context.admitted.rule?.name ?? (context.tunnel == nil ? "" : TrafficGroup.tunnels.rawValue)
        let shard = context.shard
        guard let others = shard.limitLines.count(limit, upstream, at: shard.loop.now) else { return }
        shard.observer.limitReached(
            LimitReport(
                limit: limit, upstream: upstream, url: url(context), requestID: requestID(&context), others: others))
    }

    /// Returns the URL of a request at its upstream, without its query; `HOST:PORT` of a tunnel.
    private static func url(_ context: Context) -> [UInt8] {
        let admitted = context.admitted
        return context.stream.request.with { head, bytes in
            guard !bytes.isEmpty else { return [] }
            guard let rule = admitted.rule, let destination = admitted.destination else {
                return Array(bytes[head.asked(in: bytes).authority].text.utf8)
            }
            let start = Array("\(destination.origin.scheme.rawValue)://".utf8) + destination.host
            guard case .path(let range) = admitted.target else { return start + [UInt8(ascii: "*")] }
            let path = withoutQuery(range, in: bytes)
            return start + rule.pathPrefix + (path.isEmpty ? root(head) : [UInt8](copying: bytes[path]))
        }
    }
}
