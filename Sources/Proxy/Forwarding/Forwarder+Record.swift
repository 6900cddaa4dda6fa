import Configuration
import CurlTransport
import HTTPMessage
import HTTPServer
import Reactor
import WireText

extension Forwarder {
    var record: RequestRecord {
        let (admitted, ledger) = (current.admitted, current.ledger)
        var record = RequestRecord()
        describeTarget(in: &record)
        record.status = ledger.loggedStatus
        record.shownStatus = ledger.status
        record.reason = ledger.refusal
        record.cause = ledger.cause
        record.errorClass = ledger.error
        record.wasReplayed = ledger.wasReplayed
        record.isHTTP2 = ledger.isHTTP2
        record.isHTTP10 = current.exchange.request.isHTTP10
        record.requestID = requestID
        record.traceID = current.mark?.trace
        record.bytesSent = ledger.bytesSent
        record.bytesReceived = (current.exchange.isSwitched ? 0 : stream.progress.bodyTaken) + ledger.bytesSwitched
        if let tunnel = current.tunnel {
            record.bytesSent = tunnel.toClient.count
            record.bytesReceived = tunnel.toUpstream.count
        }
        describeTimes(in: &record)
        record.audit = audit
        if let upstream = admitted.rules {
            record.upstream = upstream.name
            record.rule = upstream.index
            record.client = upstream.settings.client
            if record.client == nil, upstream.settings.injects { record.injection = upstream.settings.injectionText }
        }
        record.user = admitted.caller.user
        record.peer = stream.source.peer
        record.address = stream.source.peer == nil ? address ?? stream.source.address : nil
        record.listener = rules.address(of: stream.source.listener)
        return record
    }

    private func describeTarget(in record: inout RequestRecord) {
        let (admitted, isSent) = (current.admitted, current.ledger.isSent)
        if isSent {
            record.origin = admitted.destination?.origin
            record.pathPrefix = current.upstream?.rules.pathPrefix ?? []
        }
        stream.request.with { head, bytes in
            guard !bytes.isEmpty else { return }
            record.method = Array(bytes[head.method].text.utf8)
            if isSent, let destination = admitted.destination, case .path(let range) = admitted.target, !range.isEmpty {
                record.host = destination.host
                record.path = Self.path(bytes[range], head)
                return
            }
            // A refused request has no destination yet.
            let asked = head.asked(in: bytes)
            record.host = (isSent ? admitted.destination?.host : nil) ?? Array(bytes[asked.authority].text.utf8)
            record.path = asked.isRoot ? [Self.root(head)] : Array(bytes[asked.path].text.utf8)
        }
    }

    private func describeTimes(in record: inout RequestRecord) {
        let (times, start, now) = (current.ledger.times, current.ledger.started, shard.loop.now)
        record.duration = now.since(start)
        record.startedAt = WallTime.now - record.duration
        record.tokenWait = times.tokenWait(now)
        record.connect = times.connect
        record.firstByte = times.firstByte
        record.isReused = times.isReused
        record.tokenCame = times.tokenCameAt?.since(start)
        record.connected = times.connectedAt?.since(start)
        record.answered = times.answeredAt?.since(start)
    }

    /// `nil` if the request was neither given a credential nor denied one.
    var audit: RequestRecord.Audit? {
        if current.ledger.gaveCredential { return .given }
        // The proxy refused a request for which it has a credential, or refused it before a route was known.
        guard let error = current.ledger.error, current.ledger.refusal != nil else { return nil }
        return !current.admitted.entries.isEmpty || error == "http_request_denied" ? .denied : nil
    }

    var requestID: [UInt8] {
        let own: [UInt8]? = stream.request.with { head, bytes in
            bytes.isEmpty ? nil : RequestID.read(head.fields, in: bytes)
        }
        if let own { return own }
        let number = current.ledger.number ?? shard.nextRequestNumber()
        current.ledger.number = number
        return RequestID.own(shard.requestsBegin, number)
    }

    private static func path(_ target: Span<UInt8>, _ head: RequestHead) -> [UInt8] {
        let end = target.position(of: UInt8(ascii: "?"))
        // A query alone belongs to the root.
        return end == 0 ? [root(head)] : Array(target.extracting(0..<end).text.utf8)
    }

    /// Path of a target without one: `*` for OPTIONS (RFC 9112, section 3.2.4).
    private static func root(_ head: RequestHead) -> UInt8 {
        head.methodKind == .options ? UInt8(ascii: "*") : UInt8(ascii: "/")
    }

    /// Reports a failed exchange, or a failed dial of a tunnel.
    func report(_ error: TransportError) {
        let problem = Problem(error)
        let admitted = current.admitted
        var failure = UpstreamFailure(error: error, reason: problem.title, advice: problem.detail)
        failure.upstream = admitted.rules?.name ?? Tunnels.name
        failure.client = admitted.rules?.settings.client
        failure.requestID = requestID
        stream.request.with { head, bytes in
            guard let rules = admitted.rules, let destination = admitted.destination else {
                failure.url = Array(bytes[head.asked(in: bytes).authority].text.utf8)
                return
            }
            failure.url = Array("\(destination.origin.scheme.rawValue)://".utf8) + destination.host
            guard case .path(let range) = admitted.target else { return failure.url.append(UInt8(ascii: "*")) }
            failure.url += rules.pathPrefix + Self.path(bytes[range], head)
        }
        shard.observer.upstreamFailed(failure)
    }
}
